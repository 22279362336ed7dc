/// The copy of copy_if.h on an NVIDIA GPU, on a stream of the caller. No torch headers. Built and linked as
/// scan_cuda.h is.
#pragma once

#include <span>

#include "probe/base/result.h"
#include "probe/numerics/copy_if.h"

// What cuda_runtime.h calls cudaStream_t.
struct CUstream_st;

namespace nanquest {

/// Queues one kernel a table. Their tensors and `word` are device memory; nothing is copied if *word is 0
/// when a kernel runs. Returns before the device is done. Errors as scan_parts_cuda.
Status copy_if_cuda(std::span<const CopyTable> tables, const float* word, CUstream_st* stream);

}  // namespace nanquest
