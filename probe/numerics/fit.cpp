#include "probe/numerics/fit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "probe/base/check.h"

namespace nanquest {

/// The smallest magnitude for which a condition is true: its exponent, and the index of its mantissa among
/// the edges.
struct FitEdge {
  int exponent = 0;
  std::size_t rank = 0;
};

namespace {

constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1;
constexpr std::size_t kFormats = std::size(kFitFormats);
constexpr std::size_t kEdges = 3 * kFormats;  ///< not zero, normal, overflow
constexpr std::size_t kRanks = kEdges + 1;
// Beyond these a value is zero or overflows in every format, at every power.
constexpr int kLowestExponent = -256, kHighestExponent = 255;

int exponent_of(std::uint64_t bits) {
  return static_cast<int>((bits >> 52) & 0x7ff) - 1023;
}

/// Bits of the smallest double above 0 for which `reached` is true; it is then true for all larger ones.
template <class Reached>
std::uint64_t first_bits(const Reached& reached) {
  std::uint64_t low = 0, high = std::bit_cast<std::uint64_t>(HUGE_VAL);  // false at low, true at high
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (reached(std::bit_cast<double>(middle)) ? high : low) = middle;
  }
  return high;
}

struct Edges {
  std::array<std::uint64_t, kEdges> mantissas;  ///< sorted
  std::array<std::array<FitEdge, 3>, kFormats> of;
  Edges() {
    std::array<std::uint64_t, kEdges> bits{};
    for (std::size_t f = 0; f < kFormats; ++f) {
      const Format format = kFitFormats[f];
      const double normal = info(format).min_normal;
      bits[3 * f] = first_bits([=](double x) { return round_to(format, x) != 0; });
      bits[3 * f + 1] = first_bits([=](double x) { return !(round_to(format, x) < normal); });
      bits[3 * f + 2] = first_bits([=](double x) { return !std::isfinite(round_to(format, x)); });
    }
    for (std::size_t i = 0; i < kEdges; ++i) mantissas[i] = bits[i] & kMantissa;
    std::sort(mantissas.begin(), mantissas.end());
    for (std::size_t i = 0; i < kEdges; ++i) {
      const auto at = std::lower_bound(mantissas.begin(), mantissas.end(), bits[i] & kMantissa);
      of[i / 3][i % 3] = {exponent_of(bits[i]), static_cast<std::size_t>(at - mantissas.begin())};
    }
  }
};

const Edges& edges() {
  static const Edges made;
  return made;
}

}  // namespace

FitCounts::FitCounts() : counts_(static_cast<std::size_t>(kHighestExponent - kLowestExponent + 1) * kRanks) {}

void FitCounts::add(double value) {
  if (value == 0 || !std::isfinite(value)) return;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value), mantissa = bits & kMantissa;
  const int exponent = std::clamp(exponent_of(bits), kLowestExponent, kHighestExponent);
  std::size_t rank = 0;
  for (const std::uint64_t edge : edges().mantissas) rank += mantissa >= edge ? 1 : 0;
  ++counts_[static_cast<std::size_t>(exponent - kLowestExponent) * kRanks + rank];
  ++count_;
}

/// Number of values below an edge.
std::uint64_t FitCounts::below(const FitEdge& edge, int scale) const {
  const auto row = static_cast<std::ptrdiff_t>(edge.exponent - scale - kLowestExponent) *
                   static_cast<std::ptrdiff_t>(kRanks);
  std::uint64_t sum = 0;
  const auto end = counts_.begin() + row + static_cast<std::ptrdiff_t>(edge.rank) + 1;
  for (auto at = counts_.begin(); at != end; ++at) sum += *at;
  return sum;
}

Fit FitCounts::in(Format format, int scale) const {
  NANQUEST_CHECK(std::abs(scale) <= kMostFitScale, "power of two of a fit");
  const auto* const at = std::find(std::begin(kFitFormats), std::end(kFitFormats), format);
  NANQUEST_CHECK(at != std::end(kFitFormats), "format of a fit");
  const auto& [some, normal, overflow] = edges().of[static_cast<std::size_t>(at - std::begin(kFitFormats))];
  Fit fit;
  fit.flushed = below(some, scale);
  fit.subnormal = below(normal, scale) - fit.flushed;
  fit.overflow = count_ - below(overflow, scale);
  return fit;
}

FitScales FitCounts::scales(Format format) const {
  FitScales scales;
  while (scales.highest > -kMostFitScale && in(format, scales.highest).overflow > 0) --scales.highest;
  while (scales.lowest < kMostFitScale && in(format, scales.lowest).flushed > 0) ++scales.lowest;
  // At the ends of the range no power may satisfy the condition.
  if (in(format, scales.highest).overflow > 0) --scales.highest;
  if (in(format, scales.lowest).flushed > 0) ++scales.lowest;
  return scales;
}

}  // namespace nanquest
