/// The state that a training step changes, by its names in a checkpoint: saved and restored.
#pragma once

#include <functional>

#include "probe/base/result.h"
#include "trainer/optim/optimizer.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Weights, buffers, moments and random generators of a run. Handles to objects of others, which must outlive
/// it.
class Learned {
 public:
  /// `optimizer` holds the weights. `buffers` is called each time; empty = there are none.
  Learned(Optimizer& optimizer, std::function<NamedTensors()> buffers, at::Device device);

  /// "model.NAME", "buffer.NAME", the optimizer's state: handles to the current values.
  NamedTensors tensors() const;
  /// The same and "rng.NAME", which are copies.
  NamedTensors with_generators() const;
  /// Restores clones of the result of `with_generators`, all or nothing. `bad_file` names what is missing or
  /// of another shape. With `other_device`, the generator of a device that is not in `stored` stays as it is.
  /// Gradients are dropped.
  Status put_back(const NamedTensors& stored, bool other_device = false);
  /// Weights and moments, in place.
  void cast_to_fp32() { optimizer_->cast_to_fp32(); }
  /// Whether weights, buffers and (with `moments`) the optimizer's state are finite.
  bool finite(bool moments) const;

 private:
  Optimizer* optimizer_;
  std::function<NamedTensors()> buffers_;
  at::Device device_;
};

}  // namespace nanquest::trainer
