/// Pyramid: the extremes of any stretch of a long series, in microseconds, without losing non-finite values.
///
/// Blocks of 64 values, then levels of 4 blocks each, only complete ones. A query reads at most 2·63 values
/// and a few blocks of every level. A copy is cheap, also one that has grown by a few values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "viewer/model/grown.h"

namespace nanquest::viewer {

/// Extremes of the finite values of a stretch, and how many values were not finite.
struct Extremes {
  double min = std::numeric_limits<double>::infinity();   ///< +Inf while nothing finite was seen
  double max = -std::numeric_limits<double>::infinity();  ///< -Inf while nothing finite was seen
  std::uint64_t nan = 0, pos_inf = 0, neg_inf = 0;

  bool has_finite() const { return min <= max; }
  std::uint64_t non_finite() const { return nan + pos_inf + neg_inf; }
  void add(double value);
  void add(const Extremes& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    nan += other.nan;
    pos_inf += other.pos_inf;
    neg_inf += other.neg_inf;
  }
  void add(std::span<const double> values);
};

class Pyramid {
 public:
  /// Values of a block: a query that begins and ends with one reads no value.
  static constexpr std::size_t kBlock = 64;

  Pyramid() = default;
  /// Takes the series over; one pass.
  explicit Pyramid(std::vector<double> values);

  std::size_t size() const { return values_.size(); }
  double operator[](std::size_t i) const { return values_[i]; }
  /// Appends these; earlier copies do not change. Costs what is appended.
  void append(std::span<const double> more);
  /// Extremes of values [first, last); an empty or reversed stretch gives an empty result, `last` is cut to
  /// the size.
  Extremes query(std::size_t first, std::size_t last) const;

 private:
  void complete_blocks();

  Grown<double> values_;
  std::vector<Grown<Extremes>> levels_;
};

}  // namespace nanquest::viewer
