/// Losses: the tensors from which backward passes started since the last update.
///
/// They are the program's own numbers: a loss that a GradScaler multiplied is replaced by its value before.
/// Several backward passes (micro-batches, several terms) add up, as their gradients do.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <vector>

namespace nanquest::attach {

/// Whether the one number in `scalar` is finite. Waits for its device.
bool holds_finite(const at::Tensor& scalar);

class Losses {
 public:
  /// `scaled` was computed from `loss` by a loss scaler.
  void scaled(const at::Tensor& scaled, const at::Tensor& loss);
  /// Backward starts at `root`. `accumulates`: its gradients go into .grad. Otherwise (torch.autograd.grad)
  /// it counts as the loss only if there is no other, and only the last one: a sampler takes thousands of
  /// such gradients without ever updating a weight, at some of whose points the density is 0 and its log
  /// infinite.
  void started(const at::Tensor& root, bool accumulates);
  void clear();

  bool empty() const { return all_.empty(); }
  /// All of them added up; undefined if there are none. Does not wait for a device.
  at::Tensor total() const;
  const std::vector<at::Tensor>& all() const { return all_; }
  /// The first one that is not finite, otherwise the last; undefined if there are none. Waits for devices.
  at::Tensor telling() const;
  /// Whether one of them is NaN or Inf, as far as this is known without waiting for a device.
  bool bad() const;

 private:
  using WeakImpl = c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>;
  struct Scaled {
    WeakImpl tensor;
    at::Tensor loss;
  };
  std::vector<Scaled> scaled_;
  std::vector<at::Tensor> all_;
  bool all_accumulate_ = false;  ///< what `all_` contains
};

}  // namespace nanquest::attach
