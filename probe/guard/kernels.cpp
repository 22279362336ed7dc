#include "probe/guard/kernels.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "probe/guard/kernels_isa.h"

namespace nanquest::guard {
namespace {

bool has_avx2() {
#ifdef NANQUEST_GUARD_AVX2
  static const bool has =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  return has;
#else
  return false;
#endif
}

#ifdef NANQUEST_GUARD_AVX2
#define NANQUEST_LOOP(name, ...) (has_avx2() ? avx2::name(__VA_ARGS__) : base::name(__VA_ARGS__))
#else
#define NANQUEST_LOOP(name, ...) base::name(__VA_ARGS__)
#endif

/// Second look at a chunk that holds something non-finite: how many, and the largest that isn't NaN.
template <class Bits>
void recount(const void* data, std::size_t n, Bits infinity, LoopStats& stats, double (*decode)(Bits)) {
  const Bits magnitude = static_cast<Bits>(std::numeric_limits<Bits>::max() >> 1);
  const unsigned char* bytes = static_cast<const unsigned char*>(data);
  Bits top = 0;
  for (std::size_t i = 0; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes + i * sizeof(Bits), sizeof(Bits));
    bits = static_cast<Bits>(bits & magnitude);
    stats.non_finite += bits >= infinity;
    if (bits <= infinity && bits > top) top = bits;
  }
  stats.amax = top == infinity ? std::numeric_limits<double>::infinity() : decode(top);
}

// Finite, non-negative half or bfloat16 patterns as values.
double decode_half(std::uint16_t bits) {
  const int exponent = bits >> 10, mantissa = bits & 0x3ff;
  return exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
}
double decode_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
double decode_f32(std::uint32_t bits) {
  return std::bit_cast<float>(bits);
}
double decode_f64(std::uint64_t bits) {
  return std::bit_cast<double>(bits);
}

LoopStats run(LoopType type, void* data, std::size_t n, double factor, bool store) {
  const float narrow = static_cast<float>(factor);
  LoopStats stats;
  Seen seen;
  switch (type) {
    case LoopType::f64:
      seen = NANQUEST_LOOP(f64, static_cast<double*>(data), n, factor, store);
      break;
    case LoopType::f32:
      seen = NANQUEST_LOOP(f32, static_cast<float*>(data), n, narrow, store);
      break;
    case LoopType::f16:
      seen = NANQUEST_LOOP(f16, static_cast<std::uint16_t*>(data), n, narrow, store);
      break;
    case LoopType::bf16:
      seen = NANQUEST_LOOP(bf16, static_cast<std::uint16_t*>(data), n, narrow, store);
      break;
  }
  stats.sum_squares = seen.sum;
  if (type == LoopType::f64) {
    if (seen.top < 0x7ff0000000000000u)
      stats.amax = std::bit_cast<double>(seen.top);
    else
      recount<std::uint64_t>(data, n, 0x7ff0000000000000u, stats, decode_f64);
    return stats;
  }
  if (seen.top < 0x7f800000u)
    stats.amax = std::bit_cast<float>(static_cast<std::uint32_t>(seen.top));
  else if (type == LoopType::f32)
    recount<std::uint32_t>(data, n, 0x7f800000u, stats, decode_f32);
  else if (type == LoopType::f16)
    recount<std::uint16_t>(data, n, 0x7c00u, stats, decode_half);
  else
    recount<std::uint16_t>(data, n, 0x7f80u, stats, decode_bf16);
  return stats;
}

}  // namespace

LoopStats scale_and_measure(LoopType type, void* data, std::size_t n, double factor) {
  return run(type, data, n, factor, true);
}

LoopStats measure(LoopType type, const void* data, std::size_t n) {
  return run(type, const_cast<void*>(data), n, 1, false);
}

}  // namespace nanquest::guard
