/// Room trainer/precision: formats of computation, and keeping gradients inside their range.
#pragma once

#include <ATen/core/Tensor.h>

namespace nanquest::trainer {

/// Autocast for one scope of this thread. LibTorch's C++ interface has no such guard. Without one the cache
/// of down-cast weights outlives the scope, and the next forward uses weights from before the update. The
/// destructor restores the previous state and, at nesting depth 0, empties the cache.
class AutocastGuard {
 public:
  /// Casts to `dtype` (kHalf or kBFloat16); with kFloat autocast is switched off for the scope.
  AutocastGuard(at::DeviceType device, at::ScalarType dtype);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  at::DeviceType device_;
  bool enabled_before_;
  at::ScalarType dtype_before_;
};

}  // namespace nanquest::trainer
