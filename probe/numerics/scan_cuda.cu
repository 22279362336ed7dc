#include "probe/numerics/scan_cuda.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <string>
#include <utility>

#include "probe/numerics/scan_element.h"

namespace nanquest {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kAllLanes = 0xffffffffU;

Error cuda_error(const char* what, cudaError_t code) {
  return {code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver ? ErrorCode::unsupported : ErrorCode::io,
          std::string(what) + ": " + cudaGetErrorString(code), ""};
}

__device__ std::uint64_t shuffle_down(std::uint64_t value, int by) {
  return __shfl_down_sync(kAllLanes, static_cast<unsigned long long>(value), by);
}

/// Merges the warp's 32 stats into lane 0's.
__device__ void reduce_warp(ElementStats& s) {
  for (int by = 16; by > 0; by /= 2) {
    ElementStats other;
    other.nan = shuffle_down(s.nan, by);
    other.pos_inf = shuffle_down(s.pos_inf, by);
    other.neg_inf = shuffle_down(s.neg_inf, by);
    other.zero = shuffle_down(s.zero, by);
    other.subnormal = shuffle_down(s.subnormal, by);
    other.first_bad = shuffle_down(s.first_bad, by);
    other.abs_max = shuffle_down(s.abs_max, by);
    other.abs_min_less_one = shuffle_down(s.abs_min_less_one, by);
    other.sum_squares = __shfl_down_sync(kAllLanes, s.sum_squares, by);
    s.merge(other);
  }
}

__device__ void add_atomically(std::uint64_t& target, std::uint64_t value) {
  if (value != 0) atomicAdd(reinterpret_cast<unsigned long long*>(&target), static_cast<unsigned long long>(value));
}

/// Merges `s` into the shared result.
__device__ void publish(const ElementStats& s, ElementStats* out) {
  add_atomically(out->nan, s.nan);
  add_atomically(out->pos_inf, s.pos_inf);
  add_atomically(out->neg_inf, s.neg_inf);
  add_atomically(out->zero, s.zero);
  add_atomically(out->subnormal, s.subnormal);
  atomicMin(reinterpret_cast<unsigned long long*>(&out->first_bad), static_cast<unsigned long long>(s.first_bad));
  atomicMax(reinterpret_cast<unsigned long long*>(&out->abs_max), static_cast<unsigned long long>(s.abs_max));
  atomicMin(reinterpret_cast<unsigned long long*>(&out->abs_min_less_one),
            static_cast<unsigned long long>(s.abs_min_less_one));
  atomicAdd(&out->sum_squares, s.sum_squares);
}

template <class Layout>
__global__ void scan_kernel(const typename Layout::Bits* data, std::uint64_t n, ElementStats* out) {
  ElementStats mine;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
    mine.add<Layout>(data[i], i);

  // A plain array of bytes, since the struct's initialisers are not allowed in shared memory.
  __shared__ alignas(ElementStats) unsigned char room[sizeof(ElementStats) * (kThreads / 32)];
  auto* warps = reinterpret_cast<ElementStats*>(room);
  reduce_warp(mine);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) warps[warp] = mine;
  __syncthreads();
  if (warp != 0) return;
  ElementStats total;
  if (lane < kThreads / 32) total = warps[lane];
  reduce_warp(total);
  if (lane == 0) publish(total, out);
}

template <class Layout>
__global__ void flag_kernel(const typename Layout::Bits* data, std::uint64_t n, std::uint32_t* flag) {
  bool bad = false;
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += step)
    bad |= !Layout::finite(Layout::magnitude(data[i]));
  if (__syncthreads_or(bad) && threadIdx.x == 0) *flag = 1;  // every block that writes writes the same
}

/// Enough blocks to fill any device; the stride loop does the rest.
unsigned grid_for(std::size_t n) {
  return static_cast<unsigned>(std::clamp<std::size_t>((n + kThreads - 1) / kThreads, 1, 2048));
}

/// Calls `f` with the layout of `type`; false if it has none.
template <class F>
bool with_layout(DType type, F&& f) {
  switch (type) {
    case DType::float64:
    case DType::complex128: f(LayoutFp64{}); return true;
    case DType::float32:
    case DType::complex64: f(LayoutFp32{}); return true;
    case DType::float16: f(LayoutFp16{}); return true;
    case DType::bfloat16: f(LayoutBf16{}); return true;
    case DType::float8_e4m3fn: f(LayoutE4m3{}); return true;
    case DType::float8_e5m2: f(LayoutE5m2{}); return true;
    default: return false;
  }
}

std::size_t reals(DType type, std::size_t n) {
  return type == DType::complex64 || type == DType::complex128 ? 2 * n : n;
}

}  // namespace

Result<CudaScan> CudaScan::create() {
  CudaScan scan;
  const cudaError_t code = cudaMalloc(&scan.device_, sizeof(ElementStats));
  if (code != cudaSuccess) return cuda_error("cudaMalloc for a scan", code);
  return Result<CudaScan>(std::move(scan));
}

CudaScan::CudaScan(CudaScan&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      type_(other.type_),
      count_(other.count_),
      launched_(std::exchange(other.launched_, false)) {}

CudaScan& CudaScan::operator=(CudaScan&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(type_, other.type_);
  std::swap(count_, other.count_);
  std::swap(launched_, other.launched_);
  return *this;
}

CudaScan::~CudaScan() {
  if (device_ != nullptr) cudaFree(device_);
}

Status CudaScan::launch(DType type, const void* device_data, std::size_t n, CUstream_st* stream) {
  static const ElementStats empty;  // outlives the copy
  type_ = type;
  count_ = reals(type, n);
  launched_ = false;
  cudaError_t code = cudaMemcpyAsync(device_, &empty, sizeof empty, cudaMemcpyHostToDevice, stream);
  if (code != cudaSuccess) return cuda_error("starting a scan", code);
  const bool known = with_layout(type, [&](auto layout) {
    using Layout = decltype(layout);
    if (count_ == 0) return;
    scan_kernel<Layout><<<grid_for(count_), kThreads, 0, stream>>>(
        static_cast<const typename Layout::Bits*>(device_data), count_, device_);
  });
  if (!known)
    return Error{ErrorCode::unsupported, "no CUDA scan of " + std::string(dtype_name(type)), "copy it to the host"};
  code = cudaGetLastError();
  if (code != cudaSuccess) return cuda_error("launching a scan", code);
  launched_ = true;
  return {};
}

Result<ScanResult> CudaScan::read(CUstream_st* stream) {
  if (!launched_) return Error{ErrorCode::usage, "a CUDA scan was read that was not launched", ""};
  ElementStats stats;
  cudaError_t code = cudaMemcpyAsync(&stats, device_, sizeof stats, cudaMemcpyDeviceToHost, stream);
  if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
  if (code != cudaSuccess) return cuda_error("reading a scan", code);
  ScanResult result;
  with_layout(type_, [&](auto layout) { result = result_of<decltype(layout)>(stats, count_); });
  return result;
}

Status flag_non_finite_cuda(DType type, const void* device_data, std::size_t n, std::uint32_t* device_flag,
                            CUstream_st* stream) {
  const std::size_t count = reals(type, n);
  if (count == 0) return {};
  with_layout(type, [&](auto layout) {
    using Layout = decltype(layout);
    flag_kernel<Layout><<<grid_for(count), kThreads, 0, stream>>>(
        static_cast<const typename Layout::Bits*>(device_data), count, device_flag);
  });
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) return cuda_error("launching the finite check", code);
  return {};
}

}  // namespace nanquest
