/// back_end: how the values of a tensor are scanned in the memory where they are. There is one back end for
/// each kind of device, chosen by the device's type; no code outside this room distinguishes them.
///
///     CPU      by address, at once
///     CUDA     a kernel counts and hashes each part on the device; its few numbers are copied
///              (back_end_cuda.cpp), where the kernels are there and run (cuda_module.h)
///     others   by ATen's operators only: the values are copied to the host and scanned there
///
/// Counts, extremes and hashes are the same everywhere, bit for bit; Σx² depends on the order of addition.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>

#include "probe/base/dtype.h"
#include "probe/snapshot/model.h"

namespace nanquest {

struct ScanResult;

/// Statistics that were requested and not yet waited for.
class PendingStats {
 public:
  virtual ~PendingStats() = default;
  /// To be called after the tensor's stream has been waited for. Any thread.
  virtual StatsRow read() const = 0;
  /// Host memory held until then.
  virtual std::size_t bytes() const = 0;
};

/// Stateless, any thread. Tensors must be plain memory (is_plain) on the back end's kind of device, and
/// `type` is their dtype_of. Throws c10::Error if the device refuses.
class BackEnd {
 public:
  virtual ~BackEnd() = default;
  /// The current values in logical order; waits for the tensor's stream. With `hash` also the hash of their
  /// contiguous bytes.
  virtual StatsRow stats(const at::Tensor& tensor, DType type, bool hash) const = 0;
  /// The same without waiting: for the values after the work that is now on the tensor's stream. Null if
  /// nothing can be deferred (a CPU), or if the device has no pinned memory.
  virtual std::unique_ptr<PendingStats> begin(const at::Tensor& tensor, DType type, bool hash) const = 0;
};

/// The back end for tensors of this kind of device; ATen's operators if the device has none of its own.
const BackEnd& back_end_of(c10::DeviceType type);

/// The back end that uses ATen's operators only, for any device.
const BackEnd& any_back_end();

/// The back end with the CUDA kernel; it uses any_back_end for tensors that the kernel can't scan. Only where
/// runs_cuda_kernels().
const BackEnd& cuda_back_end();

/// The snapshot's row for the result of a scan.
StatsRow to_row(const ScanResult& found);

/// Pinned memory for `sizes` elements of `type`, contiguous; undefined if the accelerator has none.
at::Tensor pinned_memory(c10::IntArrayRef sizes, at::ScalarType type);

}  // namespace nanquest
