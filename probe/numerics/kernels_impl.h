// The body of every table of kernels.h. A source file defines NANQUEST_KERNELS (the function's name) and
// NANQUEST_VECTOR_BYTES, is compiled for its instruction set, and includes this once. Everything is in the anonymous
// namespace and nothing of the standard library is called: a shared inline function could be emitted here with
// instructions that other machines lack, and be linked everywhere.

#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "probe/numerics/kernels.h"

namespace nanquest::detail {
namespace {

constexpr int kBytes = NANQUEST_VECTOR_BYTES;
typedef double VecDouble __attribute__((vector_size(kBytes)));
typedef float VecFloat __attribute__((vector_size(kBytes)));
typedef float HalfVecFloat __attribute__((vector_size(kBytes / 2)));
typedef std::uint32_t VecU32 __attribute__((vector_size(kBytes)));
typedef std::uint64_t VecU64 __attribute__((vector_size(kBytes)));
constexpr int kParts = 64 / kBytes;  // vectors in a cache line

template <class T>
struct Unaligned {
  typedef T Type __attribute__((aligned(1), may_alias));
};

template <class V>
[[gnu::always_inline]] inline void load(V& v, const void* p) {
  __builtin_memcpy(&v, p, sizeof v);
}

template <class T>
Range range(const void* data, std::size_t n, T abs_mask) {
  const auto* p = static_cast<const typename Unaligned<T>::Type*>(data);
  T low = static_cast<T>(~T{0}), high = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const T abs = p[i] & abs_mask;
    low = abs < low ? abs : low;
    high = abs > high ? abs : high;
  }
  return {low, high};
}

/// A vector of elements as signed numbers: magnitudes have no sign bit, and signed comparisons are the native ones.
template <class T>
struct Signed {
  typedef decltype([] {
    if constexpr (sizeof(T) == 2) return std::int16_t{};
    if constexpr (sizeof(T) == 4) return std::int32_t{};
    if constexpr (sizeof(T) == 8) return std::int64_t{};
  }()) Element;
  typedef Element Vec __attribute__((vector_size(kBytes)));
  static constexpr int kLanes = kBytes / sizeof(T);
};

template <class T>
Tally tally(const void* data, std::size_t n, T abs_mask, T first_bad, T min_normal) {
  using E = typename Signed<T>::Element;
  using V = typename Signed<T>::Vec;
  constexpr int lanes = Signed<T>::kLanes;
  const auto* p = static_cast<const char*>(data);
  const E mask = static_cast<E>(abs_mask), limit = static_cast<E>(first_bad), normal = static_cast<E>(min_normal);
  const E negative_infinity = static_cast<E>(first_bad | static_cast<T>(~abs_mask));
  // Counters as narrow as the elements: one call has too few of them to overflow.
  V zero{}, tiny{}, bad{}, infinite{}, negative{}, high{}, low = V{} + mask;
  const auto add = [&](V bits) __attribute__((always_inline)) {
    const V abs = bits & mask;
    const V is_bad = (V)(abs >= limit);
    zero -= (V)(abs == 0);
    tiny -= (V)(abs < normal);
    bad -= is_bad;
    infinite -= (V)(abs == limit);
    negative -= (V)(bits == negative_infinity);
    const V finite = abs & ~is_bad;
    high = finite > high ? finite : high;
    // Zero wraps to all ones, and bad elements are made so: both become the mask, beyond every finite pattern.
    const V candidate = ((abs - 1) | is_bad) & mask;
    low = candidate < low ? candidate : low;
  };
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    V bits;
    load(bits, p + i * sizeof(T));
    add(bits);
  }
  const std::size_t padding = i < n ? lanes - (n - i) : 0;
  if (padding != 0) {
    V bits{};
    __builtin_memcpy(&bits, p + i * sizeof(T), (n - i) * sizeof(T));
    add(bits);
  }
  Tally t{0, 0, 0, 0, 0, 0, abs_mask};
  for (int j = 0; j < lanes; ++j) {
    t.zero += static_cast<T>(zero[j]);
    t.subnormal += static_cast<T>(tiny[j]);
    t.bad += static_cast<T>(bad[j]);
    t.infinite += static_cast<T>(infinite[j]);
    t.negative_infinite += static_cast<T>(negative[j]);
    if (static_cast<T>(high[j]) > t.max_finite) t.max_finite = static_cast<T>(high[j]);
    if (static_cast<T>(low[j]) < t.min_less_one) t.min_less_one = static_cast<T>(low[j]);
  }
  t.subnormal -= t.zero;
  t.zero -= padding;
  return t;
}

template <class T>
void finite_copy(const void* data, std::size_t n, T abs_mask, T first_bad, T* out) {
  const auto* p = static_cast<const typename Unaligned<T>::Type*>(data);
  for (std::size_t i = 0; i < n; ++i) out[i] = (p[i] & abs_mask) >= first_bad ? T{0} : p[i];
}

/// Folds lanes in their order, so that every vector width gives the same sum.
template <class V, int N>
double fold(const V (&lanes)[N]) {
  double sum = 0;
  for (int i = 0; i < N; ++i)
    for (unsigned j = 0; j < sizeof(V) / sizeof(lanes[0][0]); ++j) sum += static_cast<double>(lanes[i][j]);
  return sum;
}

double squares_fp64(const void* data, std::size_t n) {
  const auto* p = static_cast<const char*>(data);
  VecDouble sum[2 * kParts] = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 2 * kParts; ++k) {
      VecDouble x;
      load(x, p + i * 8 + k * kBytes);
      const VecDouble square = x * x;
      sum[k] += square;
    }
  double total = fold(sum);
  for (; i < n; ++i) {
    double x;
    load(x, p + i * 8);
    total += x * x;
  }
  return total;
}

double squares_fp32(const void* data, std::size_t n) {
  const auto* p = static_cast<const char*>(data);
  VecDouble sum[2 * kParts] = {};
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 2 * kParts; ++k) {
      HalfVecFloat f;
      load(f, p + i * 4 + k * (kBytes / 2));
      const VecDouble x = __builtin_convertvector(f, VecDouble);
      sum[k] += x * x;
    }
  double total = fold(sum);
  for (; i < n; ++i) {
    float f;
    load(f, p + i * 4);
    const double x = static_cast<double>(f);
    total += x * x;
  }
  return total;
}

/// Σ of squares in fp32 with the rounding error of every addition caught (Dekker's fast two-sum). A square of a
/// 16-bit float is exact in fp32; `sum` starts at `ceiling`, never below a summand, which is what makes the error term
/// `square - (next - sum)` exact. What remains is the rounding inside `error`: below 2^-30 of the result.
template <int N>
struct CaughtSum {
  VecFloat sum[N];
  VecFloat error[N];

  [[gnu::always_inline]] inline void start(float ceiling) {
    for (int k = 0; k < N; ++k) {
      sum[k] = VecFloat{} + ceiling;
      error[k] = VecFloat{};
    }
  }
  [[gnu::always_inline]] inline void add(int k, VecFloat x) {
    const VecFloat square = x * x;
    const VecFloat next = sum[k] + square;
    error[k] += square - (next - sum[k]);
    sum[k] = next;
  }
  double total(float ceiling) const {
    const double lanes = N * (kBytes / 4);
    return (fold(sum) - lanes * static_cast<double>(ceiling)) + fold(error);
  }
};

/// The next kBytes / 4 half-precision numbers as fp32; exact, subnormals included.
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
  Narrow half;
  load(half, p);
  const VecU32 abs = __builtin_convertvector(half, VecU32) & 0x7fff;
  // One exponent too high and an implicit 1 that subnormals lack; taking away that 1 normalises them.
  const VecFloat small = (VecFloat)((abs << 13) + (113U << 23)) - 0x1p-14F;
  return (VecFloat)(abs < 0x400 ? (VecU32)small : (abs << 13) + (112U << 23));
#endif
}

double squares_fp16(const void* data, std::size_t n, float ceiling) {
  const auto* p = static_cast<const char*>(data);
  CaughtSum<2 * kParts> sum;
  sum.start(ceiling);
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32)
    for (int k = 0; k < 2 * kParts; ++k) sum.add(k, widen_fp16(p + i * 2 + k * (kBytes / 2)));
  double total = sum.total(ceiling);
  if (i < n) {
    std::uint16_t last[32] = {};
    __builtin_memcpy(last, p + i * 2, (n - i) * 2);
    sum.start(ceiling);
    for (int k = 0; k < 2 * kParts; ++k) sum.add(k, widen_fp16(reinterpret_cast<const char*>(last) + k * (kBytes / 2)));
    total += sum.total(ceiling);
  }
  return total;
}

[[gnu::always_inline]] inline void add_bf16_line(CaughtSum<2 * kParts>& sum, const char* p) {
  for (int k = 0; k < kParts; ++k) {
    VecU32 pair;
    load(pair, p + k * kBytes);
    sum.add(k, (VecFloat)(pair << 16));
    sum.add(kParts + k, (VecFloat)(pair & 0xffff0000U));
  }
}

double squares_bf16(const void* data, std::size_t n, float ceiling) {
  const auto* p = static_cast<const char*>(data);
  CaughtSum<2 * kParts> sum;
  sum.start(ceiling);
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) add_bf16_line(sum, p + i * 2);
  double total = sum.total(ceiling);
  if (i < n) {
    std::uint16_t last[32] = {};
    __builtin_memcpy(last, p + i * 2, (n - i) * 2);
    sum.start(ceiling);
    add_bf16_line(sum, reinterpret_cast<const char*>(last));
    total += sum.total(ceiling);
  }
  return total;
}

[[gnu::always_inline]] inline VecU64 product_of_halves(VecU64 k) {
#if defined(__AVX512F__)
  return (VecU64)_mm512_mul_epu32((__m512i)k, (__m512i)(k >> 32));
#elif defined(__AVX2__)
  return (VecU64)_mm256_mul_epu32((__m256i)k, (__m256i)(k >> 32));
#elif defined(__SSE2__)
  return (VecU64)_mm_mul_epu32((__m128i)k, (__m128i)(k >> 32));
#else
  return (k & 0xffffffffU) * (k >> 32);
#endif
}

void hash_blocks(const void* data, std::size_t blocks, const std::uint64_t* keys, std::uint64_t* lanes) {
  const auto* p = static_cast<const char*>(data);
  for (; blocks > 0; --blocks) {
    VecU64 products[kParts] = {}, words[kParts] = {};
    for (int s = 0; s < 16; ++s, p += 64)
      for (int k = 0; k < kParts; ++k) {
        VecU64 word, key;
        load(word, p + k * kBytes);
        load(key, keys + 8 * s + k * (kBytes / 8));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        for (int j = 0; j < kBytes / 8; ++j) word[j] = __builtin_bswap64(word[j]);
#endif
        products[k] += product_of_halves(word ^ key);
        words[k] += word;
      }
    std::uint64_t product[8], word[8];
    __builtin_memcpy(product, products, sizeof product);
    __builtin_memcpy(word, words, sizeof word);
    for (int j = 0; j < 8; ++j) {
      const std::uint64_t lane = lanes[j] + product[j] + word[j ^ 1];
      lanes[j] = (lane ^ (lane >> 47) ^ keys[136 + j]) * 0x9e3779b1U;
    }
  }
}

template <class T>
constexpr BitKernels<T> bit_kernels() {
  return {range<T>, tally<T>, finite_copy<T>};
}

}  // namespace

const Kernels& NANQUEST_KERNELS() {
  static constexpr Kernels table = {
      NANQUEST_KERNELS_NAME,        range<std::uint8_t>,          bit_kernels<std::uint16_t>(),
      bit_kernels<std::uint32_t>(), bit_kernels<std::uint64_t>(), squares_fp64,
      squares_fp32,                 squares_fp16,                 squares_bf16,
      hash_blocks};
  return table;
}

}  // namespace nanquest::detail
