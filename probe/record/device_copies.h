/// DeviceCopies: memory of a device that is about to be overwritten, copied there: all that one operator
/// writes in a launch or two. An optimizer's update over lists writes hundreds of tensors, and a launch each
/// is more than the step itself may take.
///
///     at::Tensor kept = copies.of(storage);   // its memory; what it holds comes with
///     copies.make();                          // before anybody writes to the storage
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <vector>

namespace nanquest::record {

/// Not for several threads at a time. Throws what ATen throws (a device that has no memory left).
class DeviceCopies {
 public:
  /// New memory of as many bytes on its device, flat. Until `make` nothing is in it.
  at::Tensor of(const c10::Storage& storage);
  bool none() const { return from_.empty(); }
  /// Copies all that was asked for since the last time, on the current streams of their devices.
  void make();

 private:
  std::vector<at::Tensor> from_, to_;
};

}  // namespace nanquest::record
