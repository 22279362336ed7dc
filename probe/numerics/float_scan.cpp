#include "probe/numerics/float_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "probe/numerics/scan_element.h"

namespace nanquest::detail {
namespace {

template <class T>
T load(const void* data, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

template <class T>
const BitKernels<T>& bits_of(const Kernels& k) {
  if constexpr (sizeof(T) == 2) return k.bits16;
  if constexpr (sizeof(T) == 4) return k.bits32;
  if constexpr (sizeof(T) == 8) return k.bits64;
}

std::size_t histogram_bin(int exponent) {
  return static_cast<std::size_t>(std::clamp(exponent - kHistogramMinExponent, 0, kHistogramBins - 1));
}

/// How often each exponent field occurs. Neighbouring elements often have the same exponent: several tables in turn
/// keep one increment from waiting for the last.
template <class Layout>
struct ExponentFields {
  static constexpr int kFields = Layout::kFirstBad / Layout::kMinNormal + 1;
  static constexpr int kWays = kFields > 256 ? 1 : 4;
  std::uint64_t counts[kWays][kFields] = {};

  void add(const void* data, std::size_t n) {
    std::size_t i = 0;
    for (; i + kWays <= n; i += kWays)
      for (int w = 0; w < kWays; ++w) ++counts[w][field(data, i + w)];
    for (; i < n; ++i) ++counts[0][field(data, i)];
  }
  static std::size_t field(const void* data, std::size_t i) {
    return static_cast<std::size_t>(Layout::magnitude(load<typename Layout::Bits>(data, i)) / Layout::kMinNormal);
  }
  /// Moves normal numbers to `out`; field 0 (zeros, subnormals) and the last one (Inf, NaN) stay out.
  void flush(ExponentHistogram& out) const {
    for (int f = 1; f + 1 < kFields; ++f)
      for (int w = 0; w < kWays; ++w) out[histogram_bin(f - Layout::kBias)] += counts[w][f];
  }
};

template <class Layout>
void add_subnormals(const void* data, std::size_t n, ExponentHistogram& out) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto abs = Layout::magnitude(load<typename Layout::Bits>(data, i));
    if (Layout::subnormal(abs)) ++out[histogram_bin(Layout::exponent(abs))];
  }
}

/// Σx² by integer decoding: right for every magnitude and under flush-to-zero, and slow.
template <class Layout>
double squares_plain(const void* data, std::size_t n) {
  ElementStats s;
  for (std::size_t i = 0; i < n; ++i) s.add<Layout>(load<typename Layout::Bits>(data, i), i);
  return s.sum_squares;
}

/// bf16 is the upper half of fp32, whose kernel squares in fp64.
double squares_widened(const Kernels& k, const void* data, std::size_t n) {
  std::uint32_t wide[1024];
  double sum = 0;
  for (std::size_t done = 0; done < n;) {
    const std::size_t m = std::min<std::size_t>(n - done, std::size(wide));
    for (std::size_t i = 0; i < m; ++i) wide[i] = std::uint32_t{load<std::uint16_t>(data, done + i)} << 16;
    sum += k.squares_fp32(wide, m, {wide, wide + m});
    done += m;
  }
  return sum;
}

// Below this exponent of a block's amax, fp32 subnormals, which a flushing thread would read as zero, matter.
constexpr int kTinyExponent = -100;
// Where squares of bf16 neither overflow fp32 nor lose more than 2^-30 of the sum to underflow.
constexpr int kBf16Low = -40;
constexpr int kBf16High = 54;

/// Σx² of a block of finite numbers whose largest magnitude is `max`.
template <class Layout>
double squares(const Kernels& k, const void* data, std::size_t n, typename Layout::Bits max, Ahead ahead) {
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

template <class Layout>
std::size_t find_bad(const void* data, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i)
    if (!Layout::finite(Layout::magnitude(load<typename Layout::Bits>(data, i)))) return i;
  return n;
}

/// Counts of a block. Neighbouring blocks are alike: where the last one held nothing below the normal numbers, the two
/// extremes mostly say all; `all_normal` carries that from block to block.
template <class Layout>
Census census_of(const Kernels& k, const void* data, std::size_t n, Ahead ahead, bool& all_normal) {
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
void scan_block(const Kernels& k, const void* data, std::size_t n, const void* end, std::uint64_t start,
                bool& all_normal, ElementStats& s, ExponentHistogram* histogram) {
  using Bits = typename Layout::Bits;
  const BitKernels<Bits>& bits = bits_of<Bits>(k);
  const Ahead ahead{data, end};
  const Census c = census_of<Layout>(k, data, n, ahead, all_normal);
  Bits max = static_cast<Bits>(c.max);
  s.zero += c.zero;
  s.subnormal += c.subnormal;
  if (c.min < Layout::kFirstBad) s.abs_min_less_one = std::min(s.abs_min_less_one, c.min - 1);
  if (histogram && c.subnormal != 0) add_subnormals<Layout>(data, n, *histogram);
  alignas(64) Bits finite[kScanBlock / sizeof(Bits)];
  if (max >= Layout::kFirstBad) {
    const Damage d = bits.without_bad(data, n, Layout::kAbsMask, Layout::kFirstBad, finite);
    s.nan += d.bad - d.infinite;
    s.pos_inf += d.infinite - d.negative_infinite;
    s.neg_inf += d.negative_infinite;
    if (s.first_bad > start) s.first_bad = start + find_bad<Layout>(data, n);
    max = static_cast<Bits>(d.max_finite);
    data = finite;
  }
  s.abs_max = std::max<std::uint64_t>(s.abs_max, max);
  s.sum_squares += squares<Layout>(k, data, n, max, ahead);
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
ScanResult scan_layout(const Kernels& k, const void* data, std::size_t n, ExponentHistogram* histogram,
                       HashState* hash) {
  using Bits = typename Layout::Bits;
  static_assert(kScanBlock % kHashBlock == 0);
  ElementStats s;
  bool all_normal = true;
  const void* end = static_cast<const unsigned char*>(data) + n * sizeof(Bits);
  const auto each = [&](const void* p, std::size_t m, std::size_t start) {
    scan_block<Layout>(k, p, m, end, start, all_normal, s, histogram);
    if (hash && m == kScanBlock / sizeof(Bits)) hash->add_blocks(p, kScanBlock / kHashBlock);
    return true;
  };
  if (histogram == nullptr) {
    for_each_block<Bits>(data, n, each);
  } else {
    ExponentFields<Layout> fields;
    for_each_block<Bits>(data, n, [&](const void* p, std::size_t m, std::size_t start) {
      fields.add(p, m);
      return each(p, m, start);
    });
    fields.flush(*histogram);
  }
  return result_of<Layout>(s, n);
}

template <class Layout>
ScanResult scan_bytes(const void* data, std::size_t n, ExponentHistogram* histogram) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t counts[4][256] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (int w = 0; w < 4; ++w) ++counts[w][p[i + w]];
  for (; i < n; ++i) ++counts[0][p[i]];
  ElementStats s;
  double sum = 0;
  for (int pattern = 0; pattern < 256; ++pattern) {
    const std::uint64_t count = counts[0][pattern] + counts[1][pattern] + counts[2][pattern] + counts[3][pattern];
    if (count == 0) continue;
    ElementStats one;
    one.add<Layout>(static_cast<std::uint8_t>(pattern), 0);
    s.nan += one.nan * count;
    s.pos_inf += one.pos_inf * count;
    s.neg_inf += one.neg_inf * count;
    s.zero += one.zero * count;
    s.subnormal += one.subnormal * count;
    s.abs_max = std::max(s.abs_max, one.abs_max);
    s.abs_min_less_one = std::min(s.abs_min_less_one, one.abs_min_less_one);
    sum += one.sum_squares * static_cast<double>(count);
    const auto abs = Layout::magnitude(static_cast<std::uint8_t>(pattern));
    if (histogram && abs != 0 && Layout::finite(abs)) (*histogram)[histogram_bin(Layout::exponent(abs))] += count;
  }
  s.sum_squares = sum;
  if (s.nan + s.pos_inf + s.neg_inf != 0) s.first_bad = find_bad<Layout>(data, n);
  return result_of<Layout>(s, n);
}

template <class Layout>
bool any_bad(const Kernels& k, const void* data, std::size_t n) {
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

ScanResult scan_float(const Kernels& kernels, DType type, const void* data, std::size_t n,
                      ExponentHistogram* histogram, HashState* hash) {
  switch (type) {
    case DType::float64: return scan_layout<LayoutFp64>(kernels, data, n, histogram, hash);
    case DType::float32: return scan_layout<LayoutFp32>(kernels, data, n, histogram, hash);
    case DType::float16: return scan_layout<LayoutFp16>(kernels, data, n, histogram, hash);
    default: return scan_layout<LayoutBf16>(kernels, data, n, histogram, hash);
  }
}

ScanResult scan_fp8(DType type, const void* data, std::size_t n, ExponentHistogram* histogram) {
  return type == DType::float8_e4m3fn ? scan_bytes<LayoutE4m3>(data, n, histogram)
                                      : scan_bytes<LayoutE5m2>(data, n, histogram);
}

bool any_non_finite(const Kernels& kernels, DType type, const void* data, std::size_t n) {
  switch (type) {
    case DType::float64: return any_bad<LayoutFp64>(kernels, data, n);
    case DType::float32: return any_bad<LayoutFp32>(kernels, data, n);
    case DType::float16: return any_bad<LayoutFp16>(kernels, data, n);
    case DType::bfloat16: return any_bad<LayoutBf16>(kernels, data, n);
    case DType::float8_e4m3fn: return any_bad<LayoutE4m3>(kernels, data, n);
    default: return any_bad<LayoutE5m2>(kernels, data, n);
  }
}

}  // namespace nanquest::detail
