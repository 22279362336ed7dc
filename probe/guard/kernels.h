/// The raw loops of the gate: one read (and, when scaling, one write) over contiguous floating-point
/// memory. No torch, no allocation, no exception; any thread. `tensor_pass.h` is the door for tensors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nanquest::guard {

/// What one loop saw in the values as they are stored afterwards.
struct LoopStats {
  double sum_squares = 0;  ///< Σx², accumulated in fp64; Inf or NaN if an element is
  double amax = 0;         ///< largest |x|: Inf counts, NaN doesn't
  std::uint64_t non_finite = 0;
};

/// The element types that have a loop.
enum class LoopType : std::uint8_t { f64, f32, f16, bf16 };

/// Bytes of an element.
constexpr std::size_t loop_type_size(LoopType type) {
  return type == LoopType::f64 ? 8 : type == LoopType::f32 ? 4 : 2;
}

/// Multiplies `n` elements by `factor` in place and measures the results. The product is rounded as
/// PyTorch's gradient scaler does: fp64 in fp64; fp32 in fp32; fp16 and bf16 in fp32, then rounded.
LoopStats scale_and_measure(LoopType type, void* data, std::size_t n, double factor);

/// Measures `n` elements and writes nothing.
LoopStats measure(LoopType type, const void* data, std::size_t n);

}  // namespace nanquest::guard
