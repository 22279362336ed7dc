/// The look of part_look.h on an NVIDIA GPU: two kernels for every 180 tensors, on a stream of the caller. No
/// torch headers. Built and linked as scan_cuda.h is.
#pragma once

#include <span>

#include "probe/base/result.h"
#include "probe/numerics/part_look.h"

// What cuda_runtime.h calls cudaStream_t.
struct CUstream_st;

namespace nanquest {

/// Whether the current device can run it: its driver is not older than the toolkit, and it is of a kind that
/// the kernels were built for.
Status can_look_cuda();

/// Queues the look. Tensors, numbers, `found` and `word` (device_ops.h) are device memory, and so is `parts`,
/// for the parts of all tables. Returns before the device is done. Errors as scan_parts_cuda.
Status look_cuda(std::span<const LookTable> tables, const LookNumbers& numbers, LookFound* parts,
                 double* found, float* word, CUstream_st* stream);

}  // namespace nanquest
