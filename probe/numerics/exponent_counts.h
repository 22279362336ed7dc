/// The exponent histogram of a scan, block by block. Internal to the room.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "probe/numerics/elements.h"
#include "probe/numerics/implementation.h"
#include "probe/numerics/scan_element.h"

namespace nanquest::detail {

/// Counts exponents of blocks; `flush` moves them to the histogram.
template <class Layout>
class ExponentCounts {
 public:
  using Bits = typename Layout::Bits;

  explicit ExponentCounts(ExponentHistogram& out) : out_(out) {}

  /// Adds a block of at most kScanBlock bytes with `normals` normal numbers. All non-zero magnitude patterns
  /// are at least `min` (any pattern if all are zero), all finite ones at most `max`.
  void add_normals(const Implementation& k, const void* data, std::size_t n, std::uint64_t min, Bits max,
                   std::size_t normals, [[maybe_unused]] Ahead ahead) {
    if (normals == 0) return;
    if constexpr (sizeof(Bits) == 8) {
      for (std::size_t i = 0; i < n; ++i)
        ++counts_[Layout::magnitude(load_element<Bits>(data, i)) / Layout::kMinNormal];
    } else {
      const int low = std::max(1, static_cast<int>(min / Layout::kMinNormal));
      kernel(k)(data, n, low, static_cast<int>(max / Layout::kMinNormal), normals, counts_, ahead);
    }
  }

  /// Adds the block's subnormal numbers, `subnormals` of them.
  void add_subnormals(const void* data, std::size_t n, std::size_t subnormals) {
    constexpr std::size_t few = 64;  // skipped together if they hold none: mostly there are one or two
    for (std::size_t i = 0; subnormals > 0; i += few) {
      const std::size_t end = std::min(n, i + few);
      Bits any = 0;
      for (std::size_t j = i; j < end; ++j)
        any |= Layout::subnormal(Layout::magnitude(load_element<Bits>(data, j)));
      for (std::size_t j = any ? i : end; j < end; ++j) {
        const Bits abs = Layout::magnitude(load_element<Bits>(data, j));
        if (!Layout::subnormal(abs)) continue;
        ++out_[histogram_bin(Layout::exponent(Bits{1}) + static_cast<int>(std::bit_width(abs)) - 1)];
        --subnormals;
      }
    }
  }

  void flush() {
    // The first field is for zeros and subnormals, the last for Inf and NaN.
    for (int f = 1; f + 1 < kFields; ++f) out_[histogram_bin(f - Layout::kBias)] += counts_[f];
    std::fill(counts_, counts_ + kFields, 0);
  }

 private:
  static constexpr int kFields = Layout::kFirstBad / Layout::kMinNormal + 1;

  static Implementation::ExponentFields* kernel(const Implementation& k) {
    if constexpr (sizeof(Bits) == 4) return k.fields_fp32;
    return Layout::kMantissaBits == 10 ? k.fields_fp16 : k.fields_bf16;
  }

  ExponentHistogram& out_;
  std::uint64_t counts_[kFields] = {};
};

}  // namespace nanquest::detail
