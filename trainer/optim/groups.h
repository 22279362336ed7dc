/// Weights with other settings than the rest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Weights selected by a part of their names: {.within = "head.", .lr_factor = 0.1}.
struct ParameterGroup {
  std::string within;
  double lr_factor = 1.0;                             ///< factor of the step's rate
  std::optional<double> weight_decay = std::nullopt;  ///< also for norms and biases; none = as the rest
};

/// The settings of one weight.
struct MoveRule {
  double lr_factor = 1.0, weight_decay = 0.0;
  bool operator==(const MoveRule&) const = default;
};

/// For each of `parameters` the settings of the first group whose `within` its name contains. Otherwise
/// `weight_decay` applies to weights with two dimensions and more; on norms and biases, which have one, it
/// would only reduce their effect. `usage` for a group that matches no name.
Result<std::vector<MoveRule>> move_rules(const NamedTensors& parameters,
                                         const std::vector<ParameterGroup>& groups, double weight_decay);

/// Indices of `rules` grouped by equal rules, in the order of their first.
std::vector<std::pair<MoveRule, std::vector<std::size_t>>> by_rule(const std::vector<MoveRule>& rules);

}  // namespace nanquest::trainer
