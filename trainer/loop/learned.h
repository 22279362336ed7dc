/// What a training step changes, by its names in a checkpoint: taken down, put back.
#pragma once

#include <functional>

#include "probe/base/result.h"
#include "trainer/optim/optimizer.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Weights, buffers, moments and random generators of a run. Handles to what others own, which must outlive
/// it.
class Learned {
 public:
  /// `optimizer` holds the weights. `buffers` is asked each time; empty = there are none.
  Learned(Optimizer& optimizer, std::function<NamedTensors()> buffers, at::Device device);

  /// "model.NAME", "buffer.NAME", the optimizer's state: handles, as they are now.
  NamedTensors tensors() const;
  /// The same and "rng.NAME", which are copies.
  NamedTensors with_generators() const;
  /// Puts back clones of what `with_generators` gave, all or nothing. `bad_file` names what is missing or of
  /// another shape. The generator of a device that `stored` knows nothing of stays as it is with
  /// `other_device`. Gradients are dropped.
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
