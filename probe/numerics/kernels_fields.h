// Counts of each exponent in a block. Included only by kernels.h, once per instruction set; the rules at its
// top apply.
#pragma once

#include "probe/numerics/kernels_fetch.h"
#include "probe/numerics/kernels_vector.h"

namespace nanquest::detail {
namespace {

typedef std::uint8_t VecU8 __attribute__((vector_size(kBytes)));

constexpr std::size_t kTree = 16;  // vectors of bytes that are counted together
constexpr std::size_t kFieldBytes = kScanBlock / 2;
static_assert(kFieldBytes % (kTree * kBytes) == 0);

/// The exponent fields of a vector of elements with M mantissa bits, each in byte number Byte of its element.
template <class V, class T, int M, int Byte>
[[gnu::always_inline]] inline V place_field(const char* p) {
  constexpr int right = M - 8 * Byte;
  constexpr T mask = static_cast<T>(((T{1} << (8 * sizeof(T) - 1 - M)) - 1) << (8 * Byte));
  V v;
  load(v, p);
  if constexpr (right >= 0) return v >> right & mask;
  if constexpr (right < 0) return v << -right & mask;
}

/// The exponent fields of elements with M mantissa bits, one byte each in no particular order, padded with
/// zeros to whole trees. Returns the number of these bytes.
template <class T, int M>
[[gnu::always_inline]] inline std::size_t pack_fields(const char* p, std::size_t n, std::uint8_t* out) {
  typedef T V __attribute__((vector_size(kBytes)));
  constexpr T field = (T{1} << (8 * sizeof(T) - 1 - M)) - 1;
  std::size_t done = 0;
  for (; done + kBytes <= n; done += kBytes) {
    V fields = place_field<V, T, M, 0>(p) | place_field<V, T, M, 1>(p + kBytes);
    if constexpr (sizeof(T) == 4)
      fields |= place_field<V, T, M, 2>(p + 2 * kBytes) | place_field<V, T, M, 3>(p + 3 * kBytes);
    p += sizeof(T) * kBytes;
    __builtin_memcpy(out + done, &fields, sizeof fields);
  }
  for (; done < n; ++done, p += sizeof(T)) {
    T bits;
    load(bits, p);
    out[done] = static_cast<std::uint8_t>(bits >> M & field);
  }
  for (; done % (kTree * kBytes) != 0; ++done) out[done] = 0;
  return done;
}

#if defined(__AVX2__)
constexpr int kWindow = 16;       // exponents that one pass over the bytes counts
constexpr int kManyFields = 128;  // above this, an increment in memory per element is as fast

/// `table` holds 16 bytes, repeated; an index with its upper bit set gives 0, otherwise its lower four count.
[[gnu::always_inline]] inline VecU8 look_up(VecU8 table, VecU8 index) {
#if defined(__AVX512BW__)
  return (VecU8)_mm512_shuffle_epi8((__m512i)table, (__m512i)index);
#else
  return (VecU8)_mm256_shuffle_epi8((__m256i)table, (__m256i)index);
#endif
}

/// 0x70 … 0x7f for the fields from `first` on, larger values for all others.
[[gnu::always_inline]] inline VecU8 window_index(VecU8 fields, VecU8 first) {
  const VecU8 far = VecU8{} + 0x70;
#if defined(__AVX512BW__)
  return (VecU8)_mm512_adds_epu8((__m512i)(fields - first), (__m512i)far);
#else
  return (VecU8)_mm256_adds_epu8((__m256i)(fields - first), (__m256i)far);
#endif
}

/// True if any bit is set.
[[gnu::always_inline]] inline bool has_bits(VecU8 v) {
#if defined(__AVX512BW__)
  return _mm512_test_epi8_mask((__m512i)v, (__m512i)v) != 0;
#else
  return _mm256_testz_si256((__m256i)v, (__m256i)v) == 0;
#endif
}

/// The number of bytes with bit K set.
template <int K>
[[gnu::always_inline]] inline std::uint64_t count_bit(VecU8 v) {
#if defined(__AVX512BW__)
  return static_cast<std::uint64_t>(
      __builtin_popcountll(_mm512_test_epi8_mask((__m512i)v, _mm512_set1_epi8(static_cast<char>(1 << K)))));
#else
  // Bit K of every byte becomes the highest bit; bits that the shift brings in from the neighbour are below
  // it.
  const int upper = _mm256_movemask_epi8(_mm256_slli_epi16((__m256i)v, 7 - K));
  return static_cast<std::uint64_t>(__builtin_popcount(static_cast<unsigned>(upper)));
#endif
}

/// Full adder of bits: `sum` becomes the lower bit of the sum; the upper bit is returned.
[[gnu::always_inline]] inline VecU8 carry_save(VecU8& sum, VecU8 a, VecU8 b) {
#if defined(__AVX512BW__)
  const __m512i s = (__m512i)sum, x = (__m512i)a, y = (__m512i)b;
  sum = (VecU8)_mm512_ternarylogic_epi64(s, x, y, 0x96);
  return (VecU8)_mm512_ternarylogic_epi64(s, x, y, 0xe8);
#else
  const VecU8 either = a ^ b, carry = (a & b) | (sum & either);
  sum ^= either;
  return carry;
#endif
}

/// For each of the eight bits, the number of bytes with that bit set. Bits are added as numbers in base 2
/// whose digits are in different vectors (bit counting by Harley and Seal), so that most additions serve
/// eight counts.
class BitCounts {
 public:
  /// Adds kTree vectors, which `next()` returns.
  template <class F>
  [[gnu::always_inline]] inline void add(F&& next) {
    count_bits(tree<kTree, 3>(next), kTree);
  }
  /// Writes the eight counts.
  [[gnu::always_inline]] inline void finish(std::uint64_t* counts) {
    for (int d = 0; d < 4; ++d) count_bits(digits_[d], 1U << d);
    __builtin_memcpy(counts, counts_, sizeof counts_);
  }

 private:
  /// The carry out of the lowest digits after adding N more vectors.
  template <std::size_t N, int Digit, class F>
  [[gnu::always_inline]] inline VecU8 tree(F&& next) {
    if constexpr (N == 1) {
      return next();
    } else {
      const VecU8 a = tree<N / 2, Digit - 1>(next);
      const VecU8 b = tree<N / 2, Digit - 1>(next);
      return carry_save(digits_[Digit], a, b);
    }
  }
  [[gnu::always_inline]] inline void count_bits(VecU8 v, std::uint64_t weight) {
    counts_[0] += weight * count_bit<0>(v);
    counts_[1] += weight * count_bit<1>(v);
    counts_[2] += weight * count_bit<2>(v);
    counts_[3] += weight * count_bit<3>(v);
    counts_[4] += weight * count_bit<4>(v);
    counts_[5] += weight * count_bit<5>(v);
    counts_[6] += weight * count_bit<6>(v);
    counts_[7] += weight * count_bit<7>(v);
  }

  VecU8 digits_[4] = {};
  std::uint64_t counts_[8] = {};
};

/// counts[i] becomes the number of bytes equal to first + i among the `n` bytes; `n` is whole trees. Elements
/// have `Size` bytes.
template <std::size_t Size>
void count_window(const std::uint8_t* fields, std::size_t n, int first, std::uint64_t (&counts)[kWindow],
                  RestOfLines& lines) {
  constexpr std::size_t fetch_every = 8 * kLine / Size;  // so that one pass prefetches all lines
  VecU8 low{}, high{};
  for (int i = 0; i < kBytes; ++i) {
    low[i] = static_cast<std::uint8_t>(i % 16 < 8 ? 1 << i % 8 : 0);
    high[i] = static_cast<std::uint8_t>(i % 16 < 8 ? 0 : 1 << i % 8);
  }
  const VecU8 from = VecU8{} + static_cast<std::uint8_t>(first);
  BitCounts below, above;
  for (std::size_t at = 0; at < n; at += kTree * kBytes) {
    VecU8 index[kTree];
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kTree; ++i) {
      if (i * kBytes % fetch_every == 0) lines.fetch_some();
      VecU8 v;
      load(v, fields + at + i * kBytes);
      index[i] = window_index(v, from);
    }
    const VecU8* next = index;
    below.add([&]() __attribute__((always_inline)) { return look_up(low, *next++); });
    next = index;
    above.add([&]() __attribute__((always_inline)) { return look_up(high, *next++); });
  }
  below.finish(counts);
  above.finish(counts + 8);
}
#endif

#if defined(__AVX2__)
constexpr std::size_t kFewFields =
    16;  // up to this number, one search per field is faster than another window

/// Adds the fields low … high among the `n` bytes, which are whole trees, to counts; there are `expected` of
/// them.
void count_few(const std::uint8_t* fields, std::size_t n, int low, int high, std::size_t expected,
               std::uint64_t* counts) {
  const VecU8 from = VecU8{} + static_cast<std::uint8_t>(low),
              span = VecU8{} + static_cast<std::uint8_t>(high - low);
  for (std::size_t at = 0; at < n && expected > 0; at += 4 * kBytes) {
    VecU8 any{};
    for (std::size_t k = 0; k < 4; ++k) {
      VecU8 v;
      load(v, fields + at + k * kBytes);
      any |= (VecU8)(v - from <= span);
    }
    if (!has_bits(any)) continue;
    for (std::size_t i = at; i < at + 4 * kBytes; ++i)
      if (fields[i] >= low && fields[i] <= high) ++counts[fields[i]], --expected;
  }
}
#endif

/// From the largest exponent down, until all expected elements are found.
template <class T, int M>
void exponent_fields(const void* data, std::size_t n, int low, int high,
                     [[maybe_unused]] std::size_t expected, std::uint64_t* counts, Ahead ahead) {
  alignas(64) std::uint8_t fields[kFieldBytes];
  RestOfLines lines(ahead);
  const std::size_t packed = pack_fields<T, M>(static_cast<const char*>(data), n, fields);
  int top = high;
#if defined(__AVX2__)
  for (std::size_t found = 0; found < expected && top > high - kManyFields; top -= kWindow) {
    std::uint64_t window[kWindow];
    const int first = top - kWindow + 1;
    count_window<sizeof(T)>(fields, packed, first, window, lines);
    for (int f = first < low ? low : first; f <= top; ++f) {
      counts[f] += window[f - first];
      found += window[f - first];
    }
    if (first == low + 1) counts[low] += expected - found;  // all remaining elements have this exponent
    if (first <= low + 1) found = expected;
    if (found == expected) top = low;
    if (expected - found <= kFewFields && top - kWindow >= low) {
      count_few(fields, packed, low, top - kWindow, expected - found, counts);
      found = expected, top = low;
    }
  }
#endif
  lines.fetch_all();
  if (top < low) return;
  // Neighbours often have the same exponent: with several tables an increment does not wait for the previous
  // one.
  std::uint16_t rest[4][256] = {};
  static_assert(kFieldBytes < 1 << 16);
  for (std::size_t i = 0; i < packed; i += 4)
    for (std::size_t w = 0; w < 4; ++w) ++rest[w][fields[i + w]];
  for (; top >= low; --top)
    counts[top] += std::uint64_t{rest[0][top]} + rest[1][top] + rest[2][top] + rest[3][top];
}

}  // namespace
}  // namespace nanquest::detail
