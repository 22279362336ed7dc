/// cuda_module: loads the kernels for NVIDIA GPUs (probe/numerics/cuda_kernels.h).
#pragma once

#include "probe/base/result.h"
#include "probe/numerics/cuda_kernels.h"

namespace nanquest {

/// The kernels of libnanquest_cuda.so, which lies beside this library or program, in one of the two folders
/// above, in `lib` in one of these, where it was installed, or where the system looks for libraries. Loaded once, at the first call;
/// any thread. Error `unsupported`: there is none, it can't be loaded, or it is of another build; with the
/// reason.
const Result<const CudaKernels*>& cuda_kernels();

/// Whether this process's GPU and driver run them; asked once. Why not: the driver is older than the CUDA they
/// were built with, or they were not built for this kind of GPU.
const Status& cuda_kernels_run();
inline bool runs_cuda_kernels() { return static_cast<bool>(cuda_kernels_run()); }

}  // namespace nanquest
