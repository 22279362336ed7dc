/// back_end: how the values of a tensor are looked at where they lie. One for each kind of device, found by
/// the device's type; nothing outside this room asks which it is.
///
///     CPU      by address, at once
///     CUDA     a kernel counts and hashes each part on the device; its few numbers are copied
///              (back_end_cuda.cpp, where the build has a CUDA toolkit and the LibTorch that it is for)
///     others   by ATen's operators alone: the values are copied to the host, and looked at there
///
/// Counts, extremes and hashes are the same everywhere, bit for bit; Σx² is rounded as each one adds.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>

#include "probe/base/dtype.h"
#include "probe/snapshot/model.h"

namespace nanquest {

struct ScanResult;

/// Statistics that were asked for and have not been waited for.
class PendingStats {
 public:
  virtual ~PendingStats() = default;
  /// Once the tensor's stream has been waited for. Any thread.
  virtual StatsRow read() const = 0;
  /// Host memory that it holds until then.
  virtual std::size_t bytes() const = 0;
};

/// Stateless: any thread. What they are given is plain memory (is_plain) of their own kind of device, and
/// `type` is its dtype_of. They throw c10::Error if the device refuses.
class BackEnd {
 public:
  virtual ~BackEnd() = default;
  /// The values as they are now, in logical order; waits for the tensor's stream. With `hash` also the hash
  /// of their contiguous bytes.
  virtual StatsRow stats(const at::Tensor& tensor, DType type, bool hash) const = 0;
  /// The same without waiting: of the values that the work on its stream by now leaves. Null where nothing
  /// can be put off (a CPU), or must not be because the device has no pinned memory.
  virtual std::unique_ptr<PendingStats> begin(const at::Tensor& tensor, DType type, bool hash) const = 0;
};

/// The back end for tensors of this kind of device; for one that has none of its own, ATen's operators.
const BackEnd& back_end_of(c10::DeviceType type);

/// By ATen's operators alone, for any device.
const BackEnd& any_back_end();

/// By the CUDA kernel; what that can't do it leaves to any_back_end. Only in nanquest::tensor_cuda.
const BackEnd& cuda_back_end();

/// The snapshot's row for what a scan found.
StatsRow to_row(const ScanResult& found);

/// Pinned memory for `sizes` elements of `type`, contiguous; undefined where the accelerator has none.
at::Tensor pinned_memory(c10::IntArrayRef sizes, at::ScalarType type);

}  // namespace nanquest
