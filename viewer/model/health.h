/// What is worth knowing of a run while nothing is wrong with it: where it is nearest to overflow, what is
/// forecast, how fast it is, what memory it takes, what the probe costs, where its gradients are large, how
/// many of its values are lost to underflow.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "viewer/model/page.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// The facts of a run without an incident, from its series and headroom; what is not on record has no fact,
/// but for memory and the probe's cost, which series of older versions lack: "not recorded". Empty if an
/// incident is known or there is no series.
std::vector<Fact> health_facts(const Session& session);

/// Gradient norms at the last step by group of layers, the largest first: the root of the sum of the squares
/// of its layers' norms. A group is a block: "model.layers.3" of "model.layers.3.mlp.up", also where a layer
/// beside the blocks ("lm_head") begins otherwise. Names without a number are grouped by the first two parts
/// that not all begin with. Empty without gradient norms.
std::vector<std::pair<std::string, double>> gradient_groups(const History& history);

/// Seconds that a step takes, its beginning to the end of its update: the median of the last 100 on record;
/// NaN if none is.
double step_seconds(const History& history);

}  // namespace nanquest::viewer
