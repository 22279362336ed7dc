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

/// The layer of the blamed module first, then those whose names stand in the evidence, four at most; of each
/// the gradients and the weights, as norms where there are any.
std::vector<LayerSeries> series_of(const Session& session, const Verdict& verdict);

}  // namespace nanquest::viewer
