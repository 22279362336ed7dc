/// Signs of trouble that a loss curve shows late: each is one line, with the number that it is about.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Says once when nearly every step is clipped: the rate is then set by the clip.
class ClipWatch {
 public:
  /// A step was applied, its gradient scaled down by the clip or not.
  std::optional<std::string> add(bool clipped);

 private:
  static constexpr std::size_t kSteps = 100, kMost = 90;
  std::deque<bool> steps_;
  bool told_ = false;
};

/// What the gradients of one step say. A layer's number is a part of a name that is one ("blocks.3.mlp.up").
/// - over depth: the norms of two layers with different numbers are more than 100 times apart;
/// - vanishing: a weight's whole gradient is below 1e-12 of the largest;
/// - flushed: more than a tenth of what a matrix's rows with a gradient hold is exactly zero, with gradients
/// that
///   went through `amp` = kHalf.
std::vector<std::string> gradient_remarks(const NamedTensors& parameters, at::ScalarType amp);

/// What is said of weights that no gradient came to, at least one: their layer if they are all of one, else
/// the first three.
std::string without_gradient_remark(const std::vector<std::string>& names);

/// Whether updates reach the weights: some elements of each weight, before and after a step.
class UpdateWatch {
 public:
  /// Notes the elements that have a gradient.
  explicit UpdateWatch(const NamedTensors& parameters);
  /// After the step: a line if more than half of them are as before, because what was added is less than half
  /// a unit in the last place of the weight's format.
  std::optional<std::string> look(const NamedTensors& parameters) const;

 private:
  std::vector<at::Tensor> before_;  ///< undefined for a weight without a gradient
};

}  // namespace nanquest::trainer
