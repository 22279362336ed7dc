/// Which weights move by other settings than the rest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Weights by a part of their names: {.within = "head.", .lr_factor = 0.1}.
struct ParameterGroup {
  std::string within;
  double lr_factor = 1.0;                             ///< on the rate that a step is given
  std::optional<double> weight_decay = std::nullopt;  ///< also for norms and biases; none = as the rest
};

/// What holds for one weight.
struct MoveRule {
  double lr_factor = 1.0, weight_decay = 0.0;
  bool operator==(const MoveRule&) const = default;
};

/// For each of `parameters` the settings of the first group that its name is within. Elsewhere `weight_decay`
/// pulls on what has two dimensions and more; norms and biases, which have one, it would only take away from
/// what they are there for. `usage` for a group that no name is within.
Result<std::vector<MoveRule>> move_rules(const NamedTensors& parameters,
                                         const std::vector<ParameterGroup>& groups, double weight_decay);

/// Indices of `rules` by what holds for them, in the order of their first.
std::vector<std::pair<MoveRule, std::vector<std::size_t>>> by_rule(const std::vector<MoveRule>& rules);

}  // namespace nanquest::trainer
