/// Selection: what the user looks at. One for all panels: a choice in one panel applies to all.
#pragma once

#include <cstdint>
#include <string>

#include "probe/snapshot/model.h"
#include "viewer/model/statistic.h"
#include "viewer/model/what_if.h"

namespace nanquest::viewer {

struct Selection {
  int incident = -1;          ///< row of Session::incidents(), -1 if none
  std::int32_t op = kNone;    ///< row of the trace
  std::string layer;          ///< column of the norms: a layer's name; "" for all
  double step = -1;           ///< -1 for none
  std::string tensor;         ///< path of a stored tensor; "" if none
  std::int64_t element = -1;  ///< of that tensor, in the order of the file; -1 for none
  WhatIf what_if;             ///< the format that its values are compared with
  std::int64_t sample = -1;   ///< of the batch, -1 for none
  std::string place;          ///< whose headroom is shown; "" for the least of all places
  Statistic statistic = Statistic::gradient;
  double smoothing = 0;  ///< the weight by which curves are smoothed; 0 for not at all

  bool operator==(const Selection&) const = default;
};

}  // namespace nanquest::viewer
