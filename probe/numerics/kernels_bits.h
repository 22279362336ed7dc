// Counts of magnitude patterns, and copies without the non-finite ones. Included only by kernels.h, once per
// instruction set; the rules at its top apply.
#pragma once

#include "probe/numerics/kernels_extremes.h"

namespace nanquest::detail {
namespace {

#if defined(__AVX512BW__)
/// Operations with a mask, which in AVX-512 replaces a vector of ones and zeros.
template <class T>
struct Masked;
#define NANQUEST_MASKED(BITS, MASK)                                                              \
  template <>                                                                                    \
  struct Masked<std::uint##BITS##_t> {                                                           \
    using V = Signed<std::uint##BITS##_t>::Vec;                                                  \
    static MASK nonzero(V v) { return _mm512_test_epi##BITS##_mask((__m512i)v, (__m512i)v); }    \
    static MASK less(V v, V w) { return _mm512_cmplt_epi##BITS##_mask((__m512i)v, (__m512i)w); } \
    static V min(V low, MASK where, V v) {                                                       \
      return (V)_mm512_mask_min_epi##BITS((__m512i)low, where, (__m512i)low, (__m512i)v);        \
    }                                                                                            \
    static V count(V counter, MASK where) {                                                      \
      return (V)_mm512_mask_add_epi##BITS((__m512i)counter, where, (__m512i)counter,             \
                                          _mm512_set1_epi##BITS(1));                             \
    }                                                                                            \
  }
NANQUEST_MASKED(16, __mmask32);
NANQUEST_MASKED(32, __mmask16);
NANQUEST_MASKED(64, __mmask8);
#undef NANQUEST_MASKED
#endif

/// Lanes of a census in progress. Counters are as narrow as the elements: one block is too small to overflow
/// them.
template <class T>
struct CensusLanes {
  using E = typename Signed<T>::Element;
  using V = typename Signed<T>::Vec;
  V mask, normal;
  V some{}, small{}, high{};  // counts of the non-zero ones, of those below `normal`, and the largest
  V low;                      // the smallest non-zero one, minus kLowShift

#if defined(__AVX512BW__)
  static constexpr int kLowShift = 0;
#else
  static constexpr int kLowShift = 1;
#endif

  [[gnu::always_inline]] inline void add(V bits) {
    const V abs = bits & mask;
    high = abs > high ? abs : high;
#if defined(__AVX512BW__)
    using M = Masked<T>;
    const auto nonzero = M::nonzero(abs);
    low = M::min(low, nonzero, abs);
    some = M::count(some, nonzero);
    small = M::count(small, M::less(abs, normal));
#else
    some -= (V)(abs > 0);
    small -= (V)(abs < normal);
    // Zero wraps to all ones and becomes the mask, beyond every finite pattern.
    const V candidate = (abs - 1) & mask;
    low = candidate < low ? candidate : low;
#endif
  }
};

template <class T>
Census census(const void* data, std::size_t n, T abs_mask, T min_normal, Ahead ahead) {
  using E = typename Signed<T>::Element;
  using V = typename Signed<T>::Vec;
  CensusLanes<T> c;
  c.mask = V{} + static_cast<E>(abs_mask);
  c.normal = V{} + static_cast<E>(min_normal);
  c.low = c.mask;
  const auto* p = static_cast<const char*>(data);
  const std::size_t bytes = n * sizeof(T);
  const std::size_t done = for_vectors<V>(
      p, bytes, ahead, [&](V bits, int) __attribute__((always_inline)) { c.add(bits); });
  const std::size_t padding = done < bytes ? (kBytes - (bytes - done)) / sizeof(T) : 0;
  if (padding != 0) {
    V bits{};
    __builtin_memcpy(&bits, p + done, bytes - done);
    c.add(bits);
  }
  const std::uint64_t some = fold_lanes<T>(c.some, kSum), small = fold_lanes<T>(c.small, kSum);
  const std::uint64_t low = fold_lanes<T>(c.low, kSmaller), high = fold_lanes<T>(c.high, kLarger);
  const std::uint64_t zero = n - some;
  return {zero, small - padding - zero, high, low == abs_mask ? low : low + CensusLanes<T>::kLowShift};
}

template <class T>
Damage without_bad(const void* data, std::size_t n, T abs_mask, T first_bad, T* out) {
  using E = typename Signed<T>::Element;
  using V = typename Signed<T>::Vec;
  constexpr int lanes = Signed<T>::kLanes;
  const auto* p = static_cast<const char*>(data);
  const E mask = static_cast<E>(abs_mask), limit = static_cast<E>(first_bad);
  const E negative_infinity = static_cast<E>(first_bad | static_cast<T>(~abs_mask));
  V bad{}, infinite{}, negative{}, high{};
  const auto clean = [&](V bits) __attribute__((always_inline)) {
    const V abs = bits & mask;
    const V is_bad = (V)(abs >= limit);
    bad -= is_bad;
    infinite -= (V)(abs == limit);
    negative -= (V)(bits == negative_infinity);
    const V finite = abs & ~is_bad;
    high = finite > high ? finite : high;
    return bits & ~is_bad;
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    V bits;
    load(bits, p + i * sizeof(T));
    bits = clean(bits);
    __builtin_memcpy(out + i, &bits, sizeof bits);
  }
  if (i < n) {
    V bits{};
    __builtin_memcpy(&bits, p + i * sizeof(T), (n - i) * sizeof(T));
    bits = clean(bits);
    __builtin_memcpy(out + i, &bits, (n - i) * sizeof(T));
  }
  Damage d{};
  for (int j = 0; j < lanes; ++j) {
    d.bad += static_cast<T>(bad[j]);
    d.infinite += static_cast<T>(infinite[j]);
    d.negative_infinite += static_cast<T>(negative[j]);
    d.max_finite = static_cast<T>(high[j]) > d.max_finite ? static_cast<T>(high[j]) : d.max_finite;
  }
  return d;
}

}  // namespace
}  // namespace nanquest::detail
