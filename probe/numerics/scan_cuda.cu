#include "probe/numerics/scan_cuda.h"

#include "probe/numerics/cuda_error.h"

namespace nanquest {
namespace {

/// One block of threads for each part; `most` elements in each part but the last.
template <class Layout>
__global__ void part_kernel(const typename Layout::Bits* data, std::uint64_t n, std::uint64_t most, PartFound* found) {
  using Scan = PartScan<Layout>;
  __shared__ typename Scan::Memory memory;
  const std::uint64_t first = std::uint64_t{blockIdx.x} * most;
  const Scan scan(data + first, n - first < most ? n - first : most, memory);
  const int t = static_cast<int>(threadIdx.x);
  ElementStats mine;
  scan.sum_blocks(t, mine);
  __syncthreads();
  scan.chain_blocks(t);
  __syncthreads();
  scan.share(t, mine);
  __syncthreads();
  scan.merge_some(t);
  __syncthreads();
  scan.finish(t, found[blockIdx.x]);
}

}  // namespace

Status scan_parts_cuda(DType type, const void* data, std::size_t n, PartFound* found, CUstream_st* stream) {
  const std::size_t parts = part_count(type, n);
  if (parts == 0) return {};
  const PartRange first = part_range(type, n, 0), last = part_range(type, n, parts - 1);
  with_device_layout(type, [&](auto layout) {
    using Layout = decltype(layout);
    part_kernel<Layout><<<static_cast<unsigned>(parts), PartScan<Layout>::kThreads, 0, stream>>>(
        static_cast<const typename Layout::Bits*>(data), last.first + last.count, first.count, found);
  });
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) return cuda_error("launching a scan", code);
  return {};
}

}  // namespace nanquest
