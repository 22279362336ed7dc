/// The slow, obvious scan for comparison with the fast one: decodes every element to double.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "probe/numerics/format.h"
#include "probe/numerics/scan.h"

namespace nanquest::testing {

inline std::uint64_t raw_element(DType type, const void* data, std::size_t i) {
  std::uint64_t bits = 0;  // these tests run on little-endian hosts only
  std::memcpy(&bits, static_cast<const unsigned char*>(data) + i * dtype_size(type), dtype_size(type));
  return bits;
}

inline ScanResult naive_scan(DType type, const void* data, std::size_t n,
                             ExponentHistogram* histogram = nullptr) {
  const Format format = *format_of(type);
  ScanResult r;
  long double sum = 0;
  for (std::size_t i = 0; i < n; ++i, ++r.count) {
    const double x = decode(format, raw_element(type, data, i));
    if (std::isnan(x)) ++r.nan;
    if (std::isinf(x)) ++(x > 0 ? r.pos_inf : r.neg_inf);
    if (!std::isfinite(x)) {
      if (r.first_bad < 0) r.first_bad = static_cast<std::int64_t>(i);
      continue;
    }
    const double a = std::fabs(x);
    if (a == 0) {
      ++r.zero;
      continue;
    }
    if (a < info(format).min_normal) ++r.subnormal;
    if (a > r.amax) r.amax = a;
    if (r.amin_nonzero == 0 || a < r.amin_nonzero) r.amin_nonzero = a;
    sum += static_cast<long double>(a * a);
    if (histogram) {
      int bin = std::ilogb(a) - kHistogramMinExponent;
      bin = bin < 0 ? 0 : bin >= kHistogramBins ? kHistogramBins - 1 : bin;
      ++(*histogram)[static_cast<std::size_t>(bin)];
    }
  }
  r.sum_squares = static_cast<double>(sum);
  return r;
}

/// Asserts that every counter is equal, and Σx² within `tolerance`, relative.
#define EXPECT_SAME_SCAN(got, want, tolerance)                                 \
  do {                                                                         \
    const ::nanquest::ScanResult g_ = (got), w_ = (want);                      \
    EXPECT_EQ(g_.count, w_.count);                                             \
    EXPECT_EQ(g_.nan, w_.nan);                                                 \
    EXPECT_EQ(g_.pos_inf, w_.pos_inf);                                         \
    EXPECT_EQ(g_.neg_inf, w_.neg_inf);                                         \
    EXPECT_EQ(g_.zero, w_.zero);                                               \
    EXPECT_EQ(g_.subnormal, w_.subnormal);                                     \
    EXPECT_EQ(g_.first_bad, w_.first_bad);                                     \
    EXPECT_EQ(g_.amax, w_.amax);                                               \
    EXPECT_EQ(g_.amin_nonzero, w_.amin_nonzero);                               \
    if (std::isfinite(w_.sum_squares)) {                                       \
      EXPECT_NEAR(g_.sum_squares, w_.sum_squares, (tolerance)*w_.sum_squares); \
    } else {                                                                   \
      EXPECT_EQ(g_.sum_squares, w_.sum_squares);                               \
    }                                                                          \
  } while (false)

/// The relative error of Σx² that scan.h allows.
inline double sum_tolerance(DType type) {
  return dtype_size(type) == 2 ? 0x1p-30 : 1e-13;
}

}  // namespace nanquest::testing
