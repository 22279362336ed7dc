/// What one element of a floating-point tensor adds to a scan, shared by CPU and CUDA.
///
/// Everything works on bit patterns, so the result does not depend on the thread's rounding mode or on
/// flush-to-zero (`torch.set_flush_denormal`), and the same code runs on host and device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probe/numerics/host_device.h"
#include "probe/numerics/scan.h"

namespace nanquest {

/// A binary floating-point layout: sign, `E` exponent bits, `M` explicit mantissa bits, from the top.
/// `HasInf` is false for the OCP "fn" layout whose only non-finite pattern is all ones.
template <class BitsT, int E, int M, bool HasInf>
struct FloatLayout {
  using Bits = BitsT;
  static constexpr int kMantissaBits = M;
  static constexpr int kBias = (1 << (E - 1)) - 1;
  static constexpr Bits kAbsMask = static_cast<Bits>((Bits{1} << (E + M)) - 1);
  /// Magnitudes from this one on are not finite.
  static constexpr Bits kFirstBad = HasInf ? static_cast<Bits>(((Bits{1} << E) - 1) << M) : kAbsMask;
  static constexpr Bits kMinNormal = static_cast<Bits>(Bits{1} << M);
  static constexpr bool kHasInf = HasInf;

  /// The magnitude's pattern: the bits without the sign.
  NANQUEST_HD static constexpr Bits magnitude(Bits bits) { return static_cast<Bits>(bits & kAbsMask); }
  NANQUEST_HD static constexpr bool negative(Bits bits) { return (bits & ~kAbsMask) != 0; }
  NANQUEST_HD static constexpr bool finite(Bits abs) { return abs < kFirstBad; }
  NANQUEST_HD static constexpr bool is_infinite(Bits abs) { return HasInf && abs == kFirstBad; }
  NANQUEST_HD static constexpr bool subnormal(Bits abs) { return abs != 0 && abs < kMinNormal; }

  /// floor(log2(x)) of a finite, non-zero magnitude.
  NANQUEST_HD static constexpr int exponent(Bits abs) {
    int field = static_cast<int>(abs >> M);
    if (field != 0) return field - kBias;
    int top = -1;  // position of the highest set bit
    for (std::uint64_t rest = abs; rest != 0; rest >>= 1) ++top;
    return top - M + 1 - kBias;
  }

  /// The double's bit pattern of a finite magnitude; exact for every layout up to double's own.
  NANQUEST_HD static constexpr std::uint64_t double_bits(Bits abs) {
    if constexpr (E == 11) {
      return static_cast<std::uint64_t>(abs);
    } else {
      if (abs == 0) return 0;
      const int e = exponent(abs);
      const int shift = (abs >> M) != 0 ? 52 - M : 52 - M + (1 - kBias - e);
      const std::uint64_t mantissa =
          (static_cast<std::uint64_t>(abs) << shift) & ((std::uint64_t{1} << 52) - 1);
      return (static_cast<std::uint64_t>(e + 1023) << 52) | mantissa;
    }
  }
};

using LayoutFp64 = FloatLayout<std::uint64_t, 11, 52, true>;
using LayoutFp32 = FloatLayout<std::uint32_t, 8, 23, true>;
using LayoutFp16 = FloatLayout<std::uint16_t, 5, 10, true>;
using LayoutBf16 = FloatLayout<std::uint16_t, 8, 7, true>;
using LayoutE4m3 = FloatLayout<std::uint8_t, 4, 3, false>;
using LayoutE5m2 = FloatLayout<std::uint8_t, 5, 2, true>;

/// The double with these bits.
NANQUEST_HD inline double double_from_bits(std::uint64_t bits) {
  double value;
  static_assert(sizeof value == sizeof bits);
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/// Counters of a scan as bit patterns, so that they can be reduced with integer max, min and add in any
/// order. Plain data: a device can fill it in global memory.
struct ElementStats {
  std::uint64_t nan = 0;
  std::uint64_t pos_inf = 0;
  std::uint64_t neg_inf = 0;
  std::uint64_t zero = 0;
  std::uint64_t subnormal = 0;
  std::uint64_t first_bad = ~std::uint64_t{0};         ///< index, all ones if none
  std::uint64_t abs_max = 0;                           ///< pattern of the largest finite magnitude
  std::uint64_t abs_min_less_one = ~std::uint64_t{0};  ///< pattern of the smallest non-zero one, minus 1
  double sum_squares = 0;

  /// Adds the element with these bits at logical position `index`.
  template <class Layout>
  NANQUEST_HD void add(typename Layout::Bits bits, std::uint64_t index) {
    const typename Layout::Bits abs = Layout::magnitude(bits);
    if (!Layout::finite(abs)) {
      if (index < first_bad) first_bad = index;
      if (!Layout::is_infinite(abs)) {
        ++nan;
      } else if (Layout::negative(bits)) {
        ++neg_inf;
      } else {
        ++pos_inf;
      }
      return;
    }
    if (abs == 0) {
      ++zero;
      return;
    }
    if (abs < Layout::kMinNormal) ++subnormal;
    if (abs > abs_max) abs_max = abs;
    if (std::uint64_t{abs} - 1 < abs_min_less_one) abs_min_less_one = std::uint64_t{abs} - 1;
    const double value = double_from_bits(Layout::double_bits(abs));
    sum_squares += value * value;
  }

  /// Adds the counts of other elements; `other`'s indices must count from the same origin.
  NANQUEST_HD void merge(const ElementStats& other) {
    nan += other.nan;
    pos_inf += other.pos_inf;
    neg_inf += other.neg_inf;
    zero += other.zero;
    subnormal += other.subnormal;
    if (other.first_bad < first_bad) first_bad = other.first_bad;
    if (other.abs_max > abs_max) abs_max = other.abs_max;
    if (other.abs_min_less_one < abs_min_less_one) abs_min_less_one = other.abs_min_less_one;
    sum_squares += other.sum_squares;
  }
};

/// The ScanResult of the stats of `n` elements. Host only.
template <class Layout>
ScanResult result_of(const ElementStats& s, std::size_t n) {
  using Bits = typename Layout::Bits;
  ScanResult r;
  r.count = n;
  r.nan = s.nan;
  r.pos_inf = s.pos_inf;
  r.neg_inf = s.neg_inf;
  r.zero = s.zero;
  r.subnormal = s.subnormal;
  r.first_bad = s.first_bad < n ? static_cast<std::int64_t>(s.first_bad) : -1;
  r.amax = double_from_bits(Layout::double_bits(static_cast<Bits>(s.abs_max)));
  if (s.abs_min_less_one != ~std::uint64_t{0})
    r.amin_nonzero = double_from_bits(Layout::double_bits(static_cast<Bits>(s.abs_min_less_one + 1)));
  r.sum_squares = s.sum_squares;
  return r;
}

}  // namespace nanquest
