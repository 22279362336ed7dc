/// The raw loops of the gate: one read (and, when scaling, one write) over contiguous floating-point memory.
/// No allocation, no exception; any thread. `TensorPass` runs them over tensors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/base/dtype.h"

namespace nanquest {

/// What one loop measured, in the values as they are stored afterwards.
struct LoopStats {
  double sum_squares = 0;  ///< Σx², accumulated in fp64; Inf or NaN if an element is
  double amax = 0;         ///< largest |x|, with Inf and without NaN
  std::uint64_t non_finite = 0;
};

/// True for the types with a loop: float64, float32, float16 and bfloat16.
constexpr bool has_gate_loop(DType type) {
  return type <= DType::bfloat16;
}

/// Multiplies `n` elements by `factor` in place and measures the results. The product is rounded as in
/// PyTorch's gradient scaler: fp64 in fp64; fp32 in fp32; fp16 and bf16 in fp32, then rounded. `data` is
/// aligned for `type`, which must have a loop.
LoopStats scale_and_measure(DType type, void* data, std::size_t n, double factor);

/// Measures `n` elements and writes nothing.
LoopStats measure(DType type, const void* data, std::size_t n);

}  // namespace nanquest
