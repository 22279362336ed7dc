/// How values would fit other number formats after multiplication by a power of two: the choice of a loss
/// scale. One pass counts the values; all formats and powers are answered from the counts.
///
///     FitCounts counts;
///     for (double x : values) counts.add(x);
///     counts.in(Format::fp16, 12).overflow;   // of x * 2^12, rounded as `encode` rounds
#pragma once

#include <cstdint>
#include <vector>

#include "probe/numerics/format.h"

namespace nanquest {

/// The formats to compare with, widest first.
inline constexpr Format kFitFormats[] = {Format::fp32, Format::bf16, Format::fp16, Format::fp8_e5m2,
                                         Format::fp8_e4m3};
/// Powers of two from -kMostFitScale to kMostFitScale can be asked for.
inline constexpr int kMostFitScale = 64;

/// How many of the finite, non-zero values …
struct Fit {
  std::uint64_t overflow = 0;   ///< would not be finite
  std::uint64_t flushed = 0;    ///< would be zero
  std::uint64_t subnormal = 0;  ///< would be a subnormal number
  bool operator==(const Fit&) const = default;
};

/// Powers of two at which no value overflows and none becomes zero; no such power if `lowest` is above
/// `highest`.
struct FitScales {
  int lowest = -kMostFitScale, highest = kMostFitScale;
};

struct FitEdge;

class FitCounts {
 public:
  FitCounts();
  /// Counts a value; zero and non-finite values are ignored.
  void add(double value);
  /// Number of values counted.
  std::uint64_t count() const { return count_; }
  /// The result for the values times 2^scale (the product is exact) in one of kFitFormats; |scale| is at most
  /// kMostFitScale.
  Fit in(Format format, int scale = 0) const;
  FitScales scales(Format format) const;

 private:
  std::uint64_t below(const FitEdge& edge, int scale) const;

  std::uint64_t count_ = 0;
  std::vector<std::uint64_t> counts_;  ///< by exponent, then by the edges whose mantissas are reached
};

}  // namespace nanquest
