#include "probe/numerics/float_scan.h"

#include <algorithm>
#include <cmath>

#include "probe/numerics/elements.h"
#include "probe/numerics/exponent_counts.h"
#include "probe/numerics/scan_element.h"

namespace nanquest::detail {
namespace {

template <class T>
const BitKernels<T>& bits_of(const Implementation& k) {
  if constexpr (sizeof(T) == 2) return k.bits16;
  if constexpr (sizeof(T) == 4) return k.bits32;
  if constexpr (sizeof(T) == 8) return k.bits64;
}

/// Σx² by integer decoding: correct for every magnitude and under flush-to-zero, but slow.
template <class Layout>
double squares_plain(const void* data, std::size_t n) {
  ElementStats s;
  for (std::size_t i = 0; i < n; ++i) s.add<Layout>(load_element<typename Layout::Bits>(data, i), i);
  return s.sum_squares;
}

/// bf16 is the upper half of fp32, whose kernel squares in fp64.
double squares_widened(const Implementation& k, const void* data, std::size_t n) {
  std::uint32_t wide[1024];
  double sum = 0;
  for (std::size_t done = 0; done < n;) {
    const std::size_t m = std::min<std::size_t>(n - done, std::size(wide));
    for (std::size_t i = 0; i < m; ++i)
      wide[i] = std::uint32_t{load_element<std::uint16_t>(data, done + i)} << 16;
    sum += k.squares_fp32(wide, m, {wide, wide + m});
    done += m;
  }
  return sum;
}

// If a block's amax has an exponent below this, fp32 subnormals count, which a flushing thread would read as
// zero.
constexpr int kTinyExponent = -100;
// Above this exponent, squares of bf16 neither overflow fp32 nor lose more than 2^-30 of the sum to
// underflow.
constexpr int kBf16Low = -40;
constexpr int kBf16High = 54;

/// Σx² of a block of finite numbers whose largest magnitude is `max`.
template <class Layout>
double squares(const Implementation& k, const void* data, std::size_t n, typename Layout::Bits max,
               Ahead ahead) {
  if (max == 0) return 0;
  const int e = Layout::exponent(max);
  if constexpr (sizeof(typename Layout::Bits) == 8) return k.squares_fp64(data, n, ahead);
  if (e < kTinyExponent) return squares_plain<Layout>(data, n);
  if constexpr (sizeof(typename Layout::Bits) == 4) return k.squares_fp32(data, n, ahead);
  if constexpr (Layout::kMantissaBits == 10)
    return k.squares_fp16(data, n, std::ldexp(1.0F, 2 * e + 2), ahead);
  if (e < kBf16Low || e > kBf16High) return squares_widened(k, data, n);
  return k.squares_bf16(data, n, std::ldexp(1.0F, 2 * e + 2), ahead);
}

/// Counts of a block. Neighbouring blocks are alike: if the last one had no value below the normal numbers,
/// the two extremes usually give all counts; `all_normal` carries that from block to block.
template <class Layout>
Census census_of(const Implementation& k, const void* data, std::size_t n, Ahead ahead, bool& all_normal) {
  using Bits = typename Layout::Bits;
  const BitKernels<Bits>& bits = bits_of<Bits>(k);
  if (all_normal) {
    const Range range = bits.range(data, n, Layout::kAbsMask, ahead);
    if (range.min >= Layout::kMinNormal) return {0, 0, range.max, range.min};
  }
  const Census c = bits.census(data, n, Layout::kAbsMask, Layout::kMinNormal, ahead);
  all_normal = c.zero + c.subnormal == 0;
  return c;
}

/// One block of at most kScanBlock bytes that starts at logical index `start`; the tensor ends at `end`.
template <class Layout>
void scan_block(const Implementation& k, const void* data, std::size_t n, const void* end,
                std::uint64_t start, bool& all_normal, ElementStats& s, ExponentCounts<Layout>* exponents) {
  using Bits = typename Layout::Bits;
  const BitKernels<Bits>& bits = bits_of<Bits>(k);
  const Ahead ahead{data, end, exponents != nullptr};
  const Census c = census_of<Layout>(k, data, n, ahead, all_normal);
  Bits max = static_cast<Bits>(c.max);
  s.zero += c.zero;
  s.subnormal += c.subnormal;
  if (c.min < Layout::kFirstBad) s.abs_min_less_one = std::min(s.abs_min_less_one, c.min - 1);
  std::size_t normals = n - c.zero - c.subnormal;
  alignas(64) Bits finite[kScanBlock / sizeof(Bits)];
  if (max >= Layout::kFirstBad) {
    const Damage d = bits.without_bad(data, n, Layout::kAbsMask, Layout::kFirstBad, finite);
    s.nan += d.bad - d.infinite;
    s.pos_inf += d.infinite - d.negative_infinite;
    s.neg_inf += d.negative_infinite;
    if (s.first_bad > start) s.first_bad = start + find_bad<Layout>(data, n);
    normals -= d.bad;
    max = static_cast<Bits>(d.max_finite);
    data = finite;
  }
  s.abs_max = std::max<std::uint64_t>(s.abs_max, max);
  s.sum_squares += squares<Layout>(k, data, n, max, ahead);
  if (exponents == nullptr) return;
  exponents->add_normals(k, data, n, c.min, max, normals, ahead);
  exponents->add_subnormals(data, n, c.subnormal);
}

/// Calls `f(pointer, elements, index)` for each block of the memory.
template <class T, class F>
void for_each_block(const void* data, std::size_t n, F&& f) {
  constexpr std::size_t step = kScanBlock / sizeof(T);
  const auto* p = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < n; i += step)
    if (!f(p + i * sizeof(T), std::min(step, n - i), i)) return;
}

template <class Layout>
ScanResult scan_blocks(const Implementation& k, const void* data, std::size_t n,
                       ExponentCounts<Layout>* exponents, HashState* hash) {
  using Bits = typename Layout::Bits;
  static_assert(kScanBlock % kHashBlock == 0);
  ElementStats s;
  bool all_normal = true;
  const void* end = static_cast<const unsigned char*>(data) + n * sizeof(Bits);
  for_each_block<Bits>(data, n, [&](const void* p, std::size_t m, std::size_t start) {
    scan_block<Layout>(k, p, m, end, start, all_normal, s, exponents);
    if (hash && m == kScanBlock / sizeof(Bits)) hash->add_blocks(p, kScanBlock / kHashBlock);
    return true;
  });
  return result_of<Layout>(s, n);
}

template <class Layout>
ScanResult scan_layout(const Implementation& k, const void* data, std::size_t n, ExponentHistogram* histogram,
                       HashState* hash) {
  if (histogram == nullptr) return scan_blocks<Layout>(k, data, n, nullptr, hash);
  ExponentCounts<Layout> exponents(*histogram);
  const ScanResult result = scan_blocks<Layout>(k, data, n, &exponents, hash);
  exponents.flush();
  return result;
}

template <class Layout>
bool any_bad(const Implementation& k, const void* data, std::size_t n) {
  using Bits = typename Layout::Bits;
  const void* end = static_cast<const unsigned char*>(data) + n * sizeof(Bits);
  bool found = false;
  for_each_block<Bits>(data, n, [&](const void* p, std::size_t m, std::size_t) {
    Bits max;
    if constexpr (sizeof(Bits) == 1) {
      max = k.largest8(p, m, Layout::kAbsMask, {p, end});
    } else {
      max = bits_of<Bits>(k).largest(p, m, Layout::kAbsMask, {p, end});
    }
    found = max >= Layout::kFirstBad;
    return !found;
  });
  return found;
}

}  // namespace

ScanResult scan_float(const Implementation& with, DType type, const void* data, std::size_t n,
                      ExponentHistogram* histogram, HashState* hash) {
  switch (type) {
    case DType::float64:
      return scan_layout<LayoutFp64>(with, data, n, histogram, hash);
    case DType::float32:
      return scan_layout<LayoutFp32>(with, data, n, histogram, hash);
    case DType::float16:
      return scan_layout<LayoutFp16>(with, data, n, histogram, hash);
    default:
      return scan_layout<LayoutBf16>(with, data, n, histogram, hash);
  }
}

bool any_non_finite(const Implementation& with, DType type, const void* data, std::size_t n) {
  switch (type) {
    case DType::float64:
      return any_bad<LayoutFp64>(with, data, n);
    case DType::float32:
      return any_bad<LayoutFp32>(with, data, n);
    case DType::float16:
      return any_bad<LayoutFp16>(with, data, n);
    case DType::bfloat16:
      return any_bad<LayoutBf16>(with, data, n);
    case DType::float8_e4m3fn:
      return any_bad<LayoutE4m3>(with, data, n);
    default:
      return any_bad<LayoutE5m2>(with, data, n);
  }
}

}  // namespace nanquest::detail
