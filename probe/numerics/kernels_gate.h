// The loops of the gate (gate_loops.h): one read and, when scaling, one write. Included only by kernels.h,
// once per instruction set; the rules at its top apply.
#pragma once

#include "probe/numerics/kernels_fetch.h"
#include "probe/numerics/kernels_vector.h"

namespace nanquest::detail {
namespace {

constexpr std::size_t kBuffer = 2048;  // floats converted at a time: 8 KiB, fits in the first-level cache

// The hardware prefetcher stops at the end of a page, and a gradient is read once. So while some pages are
// summed, lines of the next ones are prefetched in turn. A processor follows one stream a page; several at
// once were measured to be 1.4 times as fast as one page after the other.
constexpr std::size_t kPages = 4, kPieces = 32;
constexpr std::size_t kPieceBytes = kPages * kPage / kPieces;

// Piece number `piece` of the pages at `x` prefetches its share of the pages after them. Prefetching past the
// end of the tensor is harmless.
template <class T>
inline void fetch_share(const T* x, std::size_t piece) {
  constexpr std::size_t lines = kPage / kLine / kPieces;
  const char* next = reinterpret_cast<const char*>(x) + kPages * kPage + piece * lines * kLine;
  for (std::size_t line = 0; line < lines; ++line)
    for (std::size_t page = 0; page < kPages; ++page) __builtin_prefetch(next + page * kPage + line * kLine);
}

template <class T, GateSeen (*kPass)(T*, std::size_t, T)>
inline GateSeen by_page(T* x, std::size_t n, T factor) {
  constexpr std::size_t piece = kPieceBytes / sizeof(T);
  GateSeen seen;
  for (std::size_t i = 0; i < n; i += piece) {
    const std::size_t number = i / piece % kPieces;
    fetch_share(x + (i - number * piece), number);
    const std::size_t left = n - i, length = left < piece ? left : piece;
    const GateSeen part = kPass(x + i, length, factor);
    seen.sum += part.sum;
    seen.top = part.top > seen.top ? part.top : seen.top;
  }
  return seen;
}

// `x` is read and, if kStore, multiplied and written. The largest magnitude is kept as bits: for non-negative
// floats the order of the bits is the order of the values, and NaN sorts above Inf.
template <bool kStore>
inline GateSeen page_f32(float* x, std::size_t n, float factor) {
  double sum = 0;
  std::int32_t top = 0;
#pragma omp simd reduction(+ : sum) reduction(max : top)
  for (std::size_t i = 0; i < n; ++i) {
    float value = x[i];
    if constexpr (kStore) x[i] = value = value * factor;
    const std::int32_t bits = __builtin_bit_cast(std::int32_t, value) & 0x7fffffff;
    top = bits > top ? bits : top;
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return {sum, static_cast<std::uint64_t>(top)};
}

template <bool kStore>
inline GateSeen page_f64(double* x, std::size_t n, double factor) {
  double sum = 0;
  std::int64_t top = 0;
#pragma omp simd reduction(+ : sum) reduction(max : top)
  for (std::size_t i = 0; i < n; ++i) {
    double value = x[i];
    if constexpr (kStore) x[i] = value = value * factor;
    const std::int64_t bits = __builtin_bit_cast(std::int64_t, value) & 0x7fffffffffffffff;
    top = bits > top ? bits : top;
    sum += value * value;
  }
  return {sum, static_cast<std::uint64_t>(top)};
}

inline void widen_bf16(const std::uint16_t* from, float* to, std::size_t n) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i)
    to[i] = __builtin_bit_cast(float, static_cast<std::uint32_t>(from[i]) << 16);
}

inline void scale_bf16(std::uint16_t* x, std::size_t n, float factor) {
#pragma omp simd
  for (std::size_t i = 0; i < n; ++i) {
    const float product = __builtin_bit_cast(float, static_cast<std::uint32_t>(x[i]) << 16) * factor;
    const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, product);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;  // to nearest, ties to even
    x[i] = static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
  }
}

// Half to float without any float arithmetic on subnormals, so flush-to-zero modes can't change it.
inline float widen_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & 0x7fffu);
  std::uint32_t bits = (magnitude << 13) + (112u << 23);
  if (magnitude >= 0x7c00u) bits += 112u << 23;
  if (magnitude < 0x0400u)
    bits = __builtin_bit_cast(std::uint32_t,
                              static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  return __builtin_bit_cast(float, bits | sign);
}

// Float to half, to nearest, ties to even.
inline std::uint16_t narrow_half(float value) {
  const std::uint32_t all = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = (all >> 16) & 0x8000u;
  const std::uint32_t bits = all & 0x7fffffffu;
  std::uint32_t half = 0;
  if (bits > 0x7f800000u) {
    half = 0x7e00u;
  } else if (bits >= 0x47800000u) {  // 65536 and up
    half = 0x7c00u;
  } else if (bits >= 0x38800000u) {  // 2^-14: normal; a carry out of the mantissa rounds 65520 up to infinity
    const std::uint32_t shifted = bits - (112u << 23);
    half = (shifted + 0x0fffu + ((shifted >> 13) & 1u)) >> 13;
  } else if (bits >= 0x33000000u) {  // 2^-25: rounds to a subnormal (or, just there, to zero)
    const std::uint32_t mantissa = (bits & 0x007fffffu) | 0x00800000u;
    const std::uint32_t shift = 126u - (bits >> 23);  // in units of 2^-24
    const std::uint32_t kept = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u),
                        tie = 1u << (shift - 1u);
    half = kept + ((rest > tie || (rest == tie && (kept & 1u))) ? 1u : 0u);
  }
  return static_cast<std::uint16_t>(half | sign);
}

inline void widen_f16(const std::uint16_t* from, float* to, std::size_t n) {
  std::size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
#endif
  for (; i < n; ++i) to[i] = widen_half(from[i]);
}

inline void scale_f16(std::uint16_t* x, std::size_t n, float factor) {
  std::size_t i = 0;
#ifdef __F16C__
  const __m256 factors = _mm256_set1_ps(factor);
  for (; i + 8 <= n; i += 8) {
    __m128i* at = reinterpret_cast<__m128i*>(x + i);
    const __m256 product = _mm256_mul_ps(_mm256_cvtph_ps(_mm_loadu_si128(at)), factors);
    _mm_storeu_si128(at, _mm256_cvtps_ph(product, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
#endif
  for (; i < n; ++i) x[i] = narrow_half(widen_half(x[i]) * factor);
}

/// How a 16-bit format is widened, and multiplied in place.
struct GateFp16 {
  static void widen(const std::uint16_t* from, float* to, std::size_t n) { widen_f16(from, to, n); }
  static void scale(std::uint16_t* x, std::size_t n, float factor) { scale_f16(x, n, factor); }
};
struct GateBf16 {
  static void widen(const std::uint16_t* from, float* to, std::size_t n) { widen_bf16(from, to, n); }
  static void scale(std::uint16_t* x, std::size_t n, float factor) { scale_bf16(x, n, factor); }
};

template <class Format>
GateSeen gate_16(void* data, std::size_t n, double factor, bool store) {
  auto* x = static_cast<std::uint16_t*>(data);
  alignas(64) float buffer[kBuffer];
  GateSeen seen;
  for (std::size_t i = 0; i < n; i += kBuffer) {
    const std::size_t length = n - i < kBuffer ? n - i : kBuffer;
    for (std::size_t piece = 0; piece < kPieces / 4; ++piece)
      fetch_share(x + i / (4 * kBuffer) * (4 * kBuffer), i / kBuffer % 4 * (kPieces / 4) + piece);
    if (store) Format::scale(x + i, length, static_cast<float>(factor));
    Format::widen(x + i, buffer, length);
    const GateSeen part = page_f32<false>(buffer, length, 1);
    seen.sum += part.sum;
    seen.top = part.top > seen.top ? part.top : seen.top;
  }
  return seen;
}

GateSeen gate_fp32(void* data, std::size_t n, double factor, bool store) {
  auto* x = static_cast<float*>(data);
  return store ? by_page<float, page_f32<true>>(x, n, static_cast<float>(factor))
               : by_page<float, page_f32<false>>(x, n, 1);
}

GateSeen gate_fp64(void* data, std::size_t n, double factor, bool store) {
  auto* x = static_cast<double*>(data);
  return store ? by_page<double, page_f64<true>>(x, n, factor) : by_page<double, page_f64<false>>(x, n, 1);
}

}  // namespace
}  // namespace nanquest::detail
