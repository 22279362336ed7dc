#include "probe/numerics/copy_if_cuda.h"
#include "probe/numerics/cuda_error.h"

namespace nanquest {
namespace {

/// One block of threads for each part.
__global__ void copy_if_kernel(const __grid_constant__ CopyTable table, const float* word) {
  if (*word != 0) CopyTable::copy(table, blockIdx.x, static_cast<int>(threadIdx.x));
}

}  // namespace

Status copy_if_cuda(std::span<const CopyTable> tables, const float* word, CUstream_st* stream) {
  for (const CopyTable& table : tables)
    if (table.parts() > 0) copy_if_kernel<<<table.parts(), CopyTable::kThreads, 0, stream>>>(table, word);
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) return cuda_error("launching a copy", code);
  return {};
}

}  // namespace nanquest
