/// Pyramid: the extremes of any stretch of a long series, in microseconds, with nothing non-finite lost.
///
/// Blocks of 64 values, then levels of 4 blocks each. A query reads at most 2·63 values and a few blocks of
/// every level.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace nanquest::viewer {

/// Extremes of the finite values of a stretch, and how many values were not finite.
struct Extremes {
  double min = std::numeric_limits<double>::infinity();   ///< +Inf while nothing finite was seen
  double max = -std::numeric_limits<double>::infinity();  ///< -Inf while nothing finite was seen
  std::uint64_t nan = 0, pos_inf = 0, neg_inf = 0;

  bool has_finite() const { return min <= max; }
  std::uint64_t non_finite() const { return nan + pos_inf + neg_inf; }
  void add(double value);
  void add(const Extremes& other);
};

class Pyramid {
 public:
  Pyramid() = default;
  /// Takes the series over; one pass.
  explicit Pyramid(std::vector<double> values);

  std::size_t size() const { return values_.size(); }
  double operator[](std::size_t i) const { return values_[i]; }
  std::span<const double> values() const { return values_; }
  /// Extremes of values [first, last); an empty or reversed stretch gives an empty result, `last` is cut to
  /// the size.
  Extremes query(std::size_t first, std::size_t last) const;

 private:
  std::vector<double> values_;
  std::vector<std::vector<Extremes>> levels_;
};

}  // namespace nanquest::viewer
