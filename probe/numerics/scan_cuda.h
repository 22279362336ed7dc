/// The scan of part_scan.h on an NVIDIA GPU: one kernel, on a stream of the caller. No torch headers.
///
/// In libnanquest_cuda.so (cuda_kernels.h), which is built if there is a CUDA toolkit. The caller owns all memory, selects the
/// current device and waits for the stream; nothing here synchronises.
#pragma once

#include <cstddef>

#include "probe/base/dtype.h"
#include "probe/base/result.h"
#include "probe/numerics/part_scan.h"

// What cuda_runtime.h calls cudaStream_t.
struct CUstream_st;

namespace nanquest {

/// Queues the scan of `n` contiguous elements of device memory, aligned to their size; `found` is device
/// memory for part_count(type, n) results. Returns before the device is done. Error `unsupported`: no device,
/// or a driver older than the toolkit; `io`: a failed launch, with CUDA's message.
Status scan_parts_cuda(DType type, const void* data, std::size_t n, PartFound* found, CUstream_st* stream);

}  // namespace nanquest
