/// The series that belong to a verdict: those of the layers that it and its evidence name.
#pragma once

#include <string>
#include <vector>

#include "viewer/model/page.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// The series of one statistic of one layer.
struct LayerSeries {
  std::string layer;
  Statistic statistic = Statistic::gradient;
};

/// The layer of the blamed module first, then at most four whose names are in the evidence; for each the
/// gradients and the weights, as norms if there are any.
std::vector<LayerSeries> series_of(const Session& session, const Verdict& verdict);

}  // namespace nanquest::viewer
