#include "probe/numerics/gate_loops.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "probe/base/check.h"
#include "probe/numerics/elements.h"
#include "probe/numerics/implementation.h"
#include "probe/numerics/scan_element.h"

namespace nanquest {
namespace detail {
namespace {

/// Second pass over memory with non-finite elements: their number, and the largest value that is not NaN.
template <class Layout>
void recount(const void* data, std::size_t n, LoopStats& stats) {
  typename Layout::Bits top = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const auto abs = Layout::magnitude(load_element<typename Layout::Bits>(data, i));
    stats.non_finite += !Layout::finite(abs);
    if (abs <= Layout::kFirstBad) top = std::max(top, abs);
  }
  stats.amax = top == Layout::kFirstBad ? std::numeric_limits<double>::infinity()
                                        : double_from_bits(Layout::double_bits(top));
}

/// `Seen` holds the patterns of the loop's largest magnitude: fp64 for fp64, fp32 for all other types.
template <class Layout, class Seen>
LoopStats stats_of(const GateSeen& seen, const void* data, std::size_t n) {
  LoopStats stats{seen.sum, 0, 0};
  if (seen.top < Seen::kFirstBad)
    stats.amax = double_from_bits(Seen::double_bits(static_cast<typename Seen::Bits>(seen.top)));
  else
    recount<Layout>(data, n, stats);
  return stats;
}

LoopStats run(DType type, void* data, std::size_t n, double factor, bool store) {
  const Implementation& with = implementation();
  switch (type) {
    case DType::float64:
      return stats_of<LayoutFp64, LayoutFp64>(with.gate_fp64(data, n, factor, store), data, n);
    case DType::float32:
      return stats_of<LayoutFp32, LayoutFp32>(with.gate_fp32(data, n, factor, store), data, n);
    case DType::float16:
      return stats_of<LayoutFp16, LayoutFp32>(with.gate_fp16(data, n, factor, store), data, n);
    default:
      NANQUEST_CHECK(type == DType::bfloat16, "a type without a loop");
      return stats_of<LayoutBf16, LayoutFp32>(with.gate_bf16(data, n, factor, store), data, n);
  }
}

}  // namespace
}  // namespace detail

LoopStats scale_and_measure(DType type, void* data, std::size_t n, double factor) {
  return detail::run(type, data, n, factor, true);
}

LoopStats measure(DType type, const void* data, std::size_t n) {
  return detail::run(type, const_cast<void*>(data), n, 1, false);
}

}  // namespace nanquest
