/// Signs of trouble that a loss curve shows late: each is one line with a number.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Reports once that nearly every step is clipped: the clip then determines the rate.
class ClipWatch {
 public:
  /// A step was applied; `clipped`: the clip scaled its gradient down.
  std::optional<std::string> add(bool clipped);

 private:
  static constexpr std::size_t kSteps = 100, kMost = 90;
  std::deque<bool> steps_;
  bool told_ = false;
};

/// Remarks on the gradients of one step. A layer's number is a part of a name that is a number
/// ("blocks.3.mlp.up").
/// - over depth: the norms of two layers with different numbers differ more than 100 times;
/// - vanishing: the norm of a weight's gradient is below 1e-12 of the largest;
/// - flushed: more than a tenth of the elements in a matrix's rows with a gradient are exactly zero, for
///   gradients that went through `amp` = kHalf.
std::vector<std::string> gradient_remarks(const NamedTensors& parameters, at::ScalarType amp);

/// The remark on weights without a gradient, at least one: names their layer if they share one, else the
/// first three.
std::string without_gradient_remark(const std::vector<std::string>& names);

/// Checks whether updates reach the weights: compares some elements of each weight before and after a step.
class UpdateWatch {
 public:
  /// Stores the elements that have a gradient.
  explicit UpdateWatch(const NamedTensors& parameters);
  /// After the step: a line if more than half of them are unchanged, because the update is less than half a
  /// unit in the last place of the weight's format.
  std::optional<std::string> look(const NamedTensors& parameters) const;

 private:
  std::vector<at::Tensor> before_;  ///< undefined for a weight without a gradient
};

}  // namespace nanquest::trainer
