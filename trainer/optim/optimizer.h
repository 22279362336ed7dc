/// Room trainer/optim: the update of weights. The loop knows an optimizer only by this interface.
///
///     Result<std::unique_ptr<Optimizer>> adamw = make_adamw(task->parameters(), {.beta2 = 0.95});
///     loss.backward();
///     (*adamw)->step(/*lr=*/3e-4);
///
/// The room never prints, does not decide whether a step is good, and does not know schedules.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Owns its state; shares the parameters with the task. One thread.
class Optimizer {
 public:
  explicit Optimizer(NamedTensors parameters);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update with the current gradients in `.grad()`, in place. Parameters without a gradient and their
  /// state stay as they are.
  virtual void step(double lr) = 0;
  /// Handles to all that `step` changes besides the parameters, by a name that is the same in every run:
  /// "exp_avg.blocks.0.mlp.up.weight". Complete from the start, so that a checkpoint can be restored into it.
  virtual NamedTensors state() const = 0;
  /// Numbers of the last step, for the run's metrics; all names from the start, NaN before the first step.
  virtual std::vector<std::pair<std::string, double>> numbers() const { return {}; }

  const NamedTensors& parameters() const { return parameters_; }
  /// Multiplies every gradient in place; the caller already knows their norm, so clipping costs one pass.
  void scale_gradients(double factor);
  /// Drops the gradients.
  void clear_gradients();
  /// Casts weights and state of narrower formats to fp32 in place. `Tensor::to` on the weights alone would
  /// leave low-precision moments behind and the next step would silently mix formats.
  void cast_to_fp32();
  /// Names of parameters that have no gradient now.
  std::vector<std::string> without_gradient() const;

 private:
  NamedTensors parameters_;
};

}  // namespace nanquest::trainer
