/// Private to the gate's loops: the same four loops, once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nanquest::guard {

/// Sum of squares, and the bits of the largest magnitude (fp32 bits, or fp64 bits for f64).
struct Seen {
  double sum = 0;
  std::uint64_t top = 0;
};

// clang-format off
#define NANQUEST_DECLARE_LOOPS(isa)                                          \
  namespace isa {                                                            \
  Seen f32(float* x, std::size_t n, float factor, bool store);               \
  Seen f64(double* x, std::size_t n, double factor, bool store);             \
  Seen f16(std::uint16_t* x, std::size_t n, float factor, bool store);       \
  Seen bf16(std::uint16_t* x, std::size_t n, float factor, bool store);      \
  }
// clang-format on
NANQUEST_DECLARE_LOOPS(base)
NANQUEST_DECLARE_LOOPS(avx2)
#undef NANQUEST_DECLARE_LOOPS

}  // namespace nanquest::guard
