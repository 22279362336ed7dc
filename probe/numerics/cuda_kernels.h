/// The kernels for NVIDIA GPUs as a library of its own, libnanquest_cuda.so. It needs nothing but a driver,
/// and knows no LibTorch: one serves all versions of PyTorch, and is loaded where a GPU is used
/// (cuda_module.h).
#pragma once

#include "probe/numerics/copy_if_cuda.h"
#include "probe/numerics/look_cuda.h"
#include "probe/numerics/scan_cuda.h"

namespace nanquest {

/// What the library has. Library and user are of one build; `version` tells a file that was left from
/// another.
struct CudaKernels {
  static constexpr int kVersion = 2;
  int version;
  decltype(&scan_parts_cuda) scan_parts;
  decltype(&can_look_cuda) can_look;
  decltype(&look_cuda) look;
  decltype(&copy_if_cuda) copy_if;
};

}  // namespace nanquest

/// The library's one function. Any thread.
extern "C" const nanquest::CudaKernels* nanquest_cuda_kernels();
