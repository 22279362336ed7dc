#include "probe/numerics/scan.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "probe/numerics/scan_element.h"

namespace nanquest {
namespace {

template <class T>
T load(const void* data, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(data) + i * sizeof(T), sizeof(T));
  return value;
}

template <class Layout>
ScanResult scan_float(const void* data, std::size_t n, ExponentHistogram* histogram) {
  using Bits = typename Layout::Bits;
  ElementStats s;
  for (std::size_t i = 0; i < n; ++i) {
    const auto bits = load<Bits>(data, i);
    s.template add<Layout>(bits, i);
    const Bits abs = Layout::magnitude(bits);
    if (histogram && abs != 0 && Layout::finite(abs))
      ++(*histogram)[static_cast<std::size_t>(
          std::clamp(Layout::exponent(abs) - kHistogramMinExponent, 0, kHistogramBins - 1))];
  }
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

template <class T>
ScanResult scan_integer(const void* data, std::size_t n) {
  ScanResult r;
  r.count = n;
  T low = 0, high = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const T value = load<T>(data, i);
    r.zero += value == 0;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  r.amax = std::max(static_cast<double>(high), -static_cast<double>(low));
  return r;
}

}  // namespace

void ScanResult::merge(const ScanResult& later) {
  if (first_bad < 0 && later.first_bad >= 0) first_bad = static_cast<std::int64_t>(count) + later.first_bad;
  count += later.count;
  nan += later.nan;
  pos_inf += later.pos_inf;
  neg_inf += later.neg_inf;
  zero += later.zero;
  subnormal += later.subnormal;
  amax = std::max(amax, later.amax);
  if (amin_nonzero == 0 || (later.amin_nonzero != 0 && later.amin_nonzero < amin_nonzero))
    amin_nonzero = later.amin_nonzero;
  sum_squares += later.sum_squares;
}

ScanResult scan(DType type, const void* data, std::size_t n, ExponentHistogram* histogram) {
  switch (type) {
    case DType::float64: return scan_float<LayoutFp64>(data, n, histogram);
    case DType::float32: return scan_float<LayoutFp32>(data, n, histogram);
    case DType::float16: return scan_float<LayoutFp16>(data, n, histogram);
    case DType::bfloat16: return scan_float<LayoutBf16>(data, n, histogram);
    case DType::float8_e4m3fn: return scan_float<LayoutE4m3>(data, n, histogram);
    case DType::float8_e5m2: return scan_float<LayoutE5m2>(data, n, histogram);
    case DType::int64: return scan_integer<std::int64_t>(data, n);
    case DType::int32: return scan_integer<std::int32_t>(data, n);
    case DType::int16: return scan_integer<std::int16_t>(data, n);
    case DType::int8: return scan_integer<std::int8_t>(data, n);
    case DType::uint8: return scan_integer<std::uint8_t>(data, n);
    case DType::boolean: {
      ScanResult r = scan_integer<std::uint8_t>(data, n);
      r.amax = std::min(r.amax, 1.0);
      return r;
    }
    case DType::complex64: return scan_float<LayoutFp32>(data, 2 * n, histogram);
    case DType::complex128: return scan_float<LayoutFp64>(data, 2 * n, histogram);
    case DType::uint16: return scan_integer<std::uint16_t>(data, n);
    case DType::uint32: return scan_integer<std::uint32_t>(data, n);
    case DType::uint64: return scan_integer<std::uint64_t>(data, n);
  }
  return {};
}

bool any_non_finite(DType type, const void* data, std::size_t n) { return scan(type, data, n).first_bad >= 0; }

}  // namespace nanquest
