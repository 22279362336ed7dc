/// The scan of scan.h on an NVIDIA GPU: the same counts, one kernel, on a stream the caller gives. No torch
/// headers.
///
/// Built as nanquest::numerics_cuda when a CUDA toolkit is there. The caller owns all memory and picks the
/// current device; nothing here synchronises except `CudaScan::read`.
///
///     Result<CudaScan> s = CudaScan::create();
///     s->launch(DType::float16, device_pointer, n, stream);
///     Result<ScanResult> r = s->read(stream);
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/base/dtype.h"
#include "probe/base/result.h"
#include "probe/numerics/scan.h"

// What cuda_runtime.h calls cudaStream_t.
struct CUstream_st;

namespace nanquest {

struct ElementStats;

/// One scan in flight on the device that was current at `create`. Movable; use from one thread at a time.
class CudaScan {
 public:
  /// Allocates the counters on the current device. Error `unsupported`: no device; `io`: CUDA refused.
  static Result<CudaScan> create();
  CudaScan(CudaScan&& other) noexcept;
  CudaScan& operator=(CudaScan&& other) noexcept;
  ~CudaScan();

  /// Queues a scan of `n` contiguous elements of device memory, aligned to its element. Types: fp64, fp32,
  /// fp16, bf16, the two fp8 and the complex ones (as pairs). Σx² is summed in an order that may differ from
  /// run to run. Error `unsupported` for other types, `io` if the launch fails. Returns before the device is
  /// done.
  Status launch(DType type, const void* device_data, std::size_t n, CUstream_st* stream);

  /// Waits for the stream and gives the result of the last launch. Error `io` with CUDA's words, `usage`
  /// without launch.
  Result<ScanResult> read(CUstream_st* stream);

 private:
  CudaScan() = default;
  ElementStats* device_ = nullptr;  // owned, in device memory
  DType type_ = DType::float32;
  std::size_t count_ = 0;
  bool launched_ = false;
};

/// Queues a kernel that sets `*device_flag` to 1 if any of `n` elements is not finite, and leaves it alone
/// otherwise: one flag can serve many tensors. Types and errors as with `CudaScan::launch`; integers are
/// finite and queue nothing.
Status flag_non_finite_cuda(DType type, const void* device_data, std::size_t n, std::uint32_t* device_flag,
                            CUstream_st* stream);

}  // namespace nanquest
