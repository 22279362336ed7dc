#include "probe/numerics/look_cuda.h"

#include "probe/numerics/cuda_error.h"

namespace nanquest {
namespace {

/// One block of threads for each part. `word`: set to 0, where that is not null.
__global__ void look_kernel(const __grid_constant__ LookTable table, LookFound* parts, float* word) {
  __shared__ PartLook::Memory memory;
  const PartLook look(memory);
  const int t = static_cast<int>(threadIdx.x);
  if (word && blockIdx.x == 0 && t == 0) *word = 0;
  LookFound mine;
  PartLook::look(table, blockIdx.x, t, mine);
  look.share(t, mine);
  __syncthreads();
  look.merge_some(t);
  __syncthreads();
  if (t == 0) parts[blockIdx.x] = look.merge_all();
}

/// One block of threads for each tensor.
__global__ void gather_kernel(const __grid_constant__ LookTable table, const LookFound* parts,
                              const __grid_constant__ LookNumbers numbers, LookResults results) {
  __shared__ PartLook::Memory memory;
  const PartLook look(memory);
  const int t = static_cast<int>(threadIdx.x), tensor = static_cast<int>(blockIdx.x);
  if (tensor == 0) results.put_number(numbers, t);
  if (tensor >= table.count) return;
  LookFound mine;
  PartLook::gather(table, tensor, parts, t, mine);
  look.share(t, mine);
  __syncthreads();
  look.merge_some(t);
  __syncthreads();
  if (t == 0) results.put(tensor, table.type[tensor], look.merge_all());
}

}  // namespace

Status can_look_cuda() {
  cudaFuncAttributes found;
  const cudaError_t code = cudaFuncGetAttributes(&found, look_kernel);
  if (code == cudaSuccess) return {};
  (void)cudaGetLastError();  // nobody else shall find it
  return cuda_error("finding the kernel", code);
}

Status look_cuda(std::span<const LookTable> tables, const LookNumbers& numbers, LookFound* parts, double* found,
                 float* word, CUstream_st* stream) {
  const LookTable none{};
  if (tables.empty()) tables = {&none, 1};
  LookResults results{found, word, tensors_of(tables), 0};
  if (tables.front().parts() == 0) (void)cudaMemsetAsync(word, 0, sizeof *word, stream);
  for (const LookTable& table : tables) {
    const bool first = &table == &tables.front();
    if (table.parts() > 0)
      look_kernel<<<table.parts(), PartLook::kThreads, 0, stream>>>(table, parts, first ? word : nullptr);
    const unsigned groups = table.count > 0 ? static_cast<unsigned>(table.count) : 1;
    gather_kernel<<<groups, PartLook::kThreads, 0, stream>>>(table, parts, first ? numbers : LookNumbers{}, results);
    results.tensor += static_cast<std::uint64_t>(table.count);
    parts += table.parts();
  }
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) return cuda_error("launching a look", code);
  return {};
}

}  // namespace nanquest
