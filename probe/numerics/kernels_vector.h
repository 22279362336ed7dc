// Vectors of the width that the including kernels_….cpp chose. Included only by kernels.h, once per
// instruction set; the rules at its top apply.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace nanquest::detail {
namespace {

constexpr int kBytes = NANQUEST_VECTOR_BYTES;
typedef double VecDouble __attribute__((vector_size(kBytes)));
typedef float VecFloat __attribute__((vector_size(kBytes)));
typedef float HalfVecFloat __attribute__((vector_size(kBytes / 2)));
typedef std::uint32_t VecU32 __attribute__((vector_size(kBytes)));
typedef std::uint64_t VecU64 __attribute__((vector_size(kBytes)));
constexpr int kParts = 64 / kBytes;  // vectors in a cache line

template <class V>
[[gnu::always_inline]] inline void load(V& v, const void* p) {
  __builtin_memcpy(&v, p, sizeof v);
}

/// x² + c. The callers' squares are exact, so one or two roundings give the same bits.
template <class V>
[[gnu::always_inline]] inline V add_exact_square(V x, V c) {
#if defined(__FMA__)
  constexpr bool is_double = sizeof(x[0]) == 8;
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64 && is_double) return (V)_mm512_fmadd_pd((__m512d)x, (__m512d)x, (__m512d)c);
  if constexpr (sizeof(V) == 64 && !is_double) return (V)_mm512_fmadd_ps((__m512)x, (__m512)x, (__m512)c);
#endif
  if constexpr (sizeof(V) == 32 && is_double) return (V)_mm256_fmadd_pd((__m256d)x, (__m256d)x, (__m256d)c);
  if constexpr (sizeof(V) == 32 && !is_double) return (V)_mm256_fmadd_ps((__m256)x, (__m256)x, (__m256)c);
#else
  return x * x + c;
#endif
}

/// The next kBytes / 8 floats as doubles; a thread that flushes subnormals reads them as zero.
[[gnu::always_inline]] inline VecDouble widen_fp32(const void* p) {
#if defined(__AVX512F__)
  __m256 f;
  load(f, p);
  return (VecDouble)_mm512_cvtps_pd(f);
#elif defined(__AVX2__)
  __m128 f;
  load(f, p);
  return (VecDouble)_mm256_cvtps_pd(f);
#else
  HalfVecFloat f;
  load(f, p);
  return __builtin_convertvector(f, VecDouble);
#endif
}

/// The next half-precision numbers as fp32; exact, subnormals included.
[[gnu::always_inline]] inline VecFloat widen_fp16(const void* p) {
#if defined(__AVX512F__)
  __m256i half;
  load(half, p);
  return (VecFloat)_mm512_cvtph_ps(half);
#elif defined(__F16C__)
  __m128i half;
  load(half, p);
  return (VecFloat)_mm256_cvtph_ps(half);
#else
  typedef std::uint16_t Narrow __attribute__((vector_size(kBytes / 2)));
  typedef std::uint32_t Wide __attribute__((vector_size(kBytes)));
  Narrow half;
  load(half, p);
  const Wide abs = __builtin_convertvector(half, Wide) & 0x7fff;
  // The exponent is one too high and the implicit 1 is one that subnormals lack; subtracting that 1
  // normalises them.
  const VecFloat small = (VecFloat)((abs << 13) + (113U << 23)) - 0x1p-14F;
  return (VecFloat)(abs < 0x400 ? (Wide)small : (abs << 13) + (112U << 23));
#endif
}

}  // namespace
}  // namespace nanquest::detail
