/// DeviceCopies: copies a device's memory on that device before it is overwritten. Everything that one
/// operator will write is copied in one or two launches. An optimizer's update over lists writes hundreds of
/// tensors, and one launch for each could take longer than the step.
///
///     at::Tensor kept = copies.of(storage);   // a copy, not filled yet
///     copies.make();                          // before the storage is overwritten
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <vector>

namespace nanquest::record {

/// Not thread-safe. Throws what ATen throws (for example when the device has no memory left).
class DeviceCopies {
 public:
  /// New flat memory of the same size on the same device. It is filled by `make`.
  at::Tensor of(const c10::Storage& storage);
  bool none() const { return from_.empty(); }
  /// Makes all copies that were asked for since the last call, on the current streams of their devices.
  void make();

 private:
  std::vector<at::Tensor> from_, to_;
};

}  // namespace nanquest::record
