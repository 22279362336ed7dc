#include <algorithm>

#include "probe/numerics/elements.h"
#include "probe/numerics/float_scan.h"
#include "probe/numerics/scan_element.h"

namespace nanquest::detail {
namespace {

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
    const std::uint64_t count =
        counts[0][pattern] + counts[1][pattern] + counts[2][pattern] + counts[3][pattern];
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
    if (histogram && abs != 0 && Layout::finite(abs))
      (*histogram)[histogram_bin(Layout::exponent(abs))] += count;
  }
  s.sum_squares = sum;
  if (s.nan + s.pos_inf + s.neg_inf != 0) s.first_bad = find_bad<Layout>(data, n);
  return result_of<Layout>(s, n);
}

}  // namespace

ScanResult scan_fp8(DType type, const void* data, std::size_t n, ExponentHistogram* histogram) {
  return type == DType::float8_e4m3fn ? scan_bytes<LayoutE4m3>(data, n, histogram)
                                      : scan_bytes<LayoutE5m2>(data, n, histogram);
}

}  // namespace nanquest::detail
