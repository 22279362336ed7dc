/// Losses: what backward was started from since the last update.
///
/// The program's own numbers: a loss that a GradScaler multiplied is known by what it was before. Several
/// backward passes (micro-batches, several terms) add up, as their gradients do.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <vector>

namespace nanquest::attach {

/// Whether the one number in `scalar` is finite. Waits for its device.
bool holds_finite(const at::Tensor& scalar);

class Losses {
 public:
  /// `scaled` was made from `loss` by a loss scaler.
  void scaled(const at::Tensor& scaled, const at::Tensor& loss);
  /// Backward starts at `root`. `accumulates`: its gradients go into .grad; otherwise (torch.autograd.grad)
  /// it counts as the loss only while nothing else does.
  void started(const at::Tensor& root, bool accumulates);
  void clear();

  bool empty() const { return all_.empty(); }
  /// All of them added up, undefined if there are none. No device is waited for.
  at::Tensor total() const;
  /// The first that is not finite, else the last; undefined if there are none. Waits for devices.
  at::Tensor telling() const;
  /// Whether one of them is NaN or Inf, as far as that can be known without waiting for a device.
  bool bad() const;

 private:
  using WeakImpl = c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>;
  struct Scaled {
    WeakImpl tensor;
    at::Tensor loss;
  };
  std::vector<Scaled> scaled_;
  std::vector<at::Tensor> all_;
  bool all_accumulate_ = false;  ///< what `all_` holds
};

}  // namespace nanquest::attach
