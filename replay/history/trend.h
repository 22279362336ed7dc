/// trend: does a series rise, how fast, and could it be chance?
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace nanquest {

/// The trend of a series: the Theil–Sen slope of its log2, which is the median of the slopes between all
/// pairs of points (Sen 1968). Points are the finite positive values: one bad row changes nothing.
struct Trend {
  int points = 0;
  double bits_per_step = 0;
  double rising = 0;  ///< share of the pairs that rise
  /// How often numbers in random order have as many rising pairs: the one-sided test of Mann (1945), counted
  /// exactly. 1 if there are fewer than two points.
  double chance = 1;
};

/// The trend of `series`, one value per step. Without slope if there are fewer than two points.
Trend log2_trend(const std::vector<double>& series);

/// The first index of `series` at which it is finite and more than 8 times the largest of the 16 values
/// before it (of at least 4 that are finite and above zero): no trend does that from one step to the next.
/// Nothing if there is none.
std::optional<std::size_t> first_jump(const std::vector<double>& series);

/// Given the chances that tests found, in any order: the largest chance that counts if at most `share` of
/// what counts may be chance (Benjamini & Hochberg 1995); negative if none does.
double largest_that_counts(std::vector<double> chances, double share);

}  // namespace nanquest
