#include "probe/numerics/cuda_kernels.h"

extern "C" const nanquest::CudaKernels* nanquest_cuda_kernels() {
  using namespace nanquest;
  static constexpr CudaKernels all{CudaKernels::kVersion, &scan_parts_cuda, &can_look_cuda, &look_cuda,
                                   &copy_if_cuda};
  return &all;
}
