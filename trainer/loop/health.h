/// Signs of trouble that a loss curve shows late: each is one line with a number.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/optim/optimizer.h"
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

/// Looks for all of these signs while a run's steps are applied.
class HealthWatch {
 public:
  /// Gradients are looked at in step 0, updates in step `full_rate`, the first after the warm-up, clipping in
  /// every step if the run `clips`. `optimizer` must outlive it. `say` gets each remark.
  HealthWatch(const Optimizer& optimizer, std::int64_t full_rate, bool clips,
              std::function<void(const std::string&)> say);

  /// Gradients computed in `amp` are there, and the update of `step` comes next.
  void before_update(std::int64_t step, at::ScalarType amp);
  /// That update was applied; `clipped` as in `ClipWatch`.
  void after_update(std::int64_t step, bool clipped);

 private:
  const Optimizer& optimizer_;
  std::int64_t full_rate_;
  bool clips_;
  std::function<void(const std::string&)> say_;
  ClipWatch clip_watch_;
  std::optional<UpdateWatch> update_watch_;  ///< of the update that comes next, if it is looked at
};

}  // namespace nanquest::trainer
