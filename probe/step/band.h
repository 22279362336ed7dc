/// Band: the usual range of one figure of a run (its loss, its gradient norm), learned from the run itself.
///
///     Band band(1.25);
///     if (band.above(loss) > 1) …            // far out
///     else band.take(loss);
///
/// The band is the median of the last good steps and their robust spread (1.4826 times the median absolute
/// deviation), measured around a line where the figure follows a trend. Figures that are positive are
/// compared by their logarithm. A value is beyond the edge if it lies kDeviations spreads above the middle,
/// kTail times as far as any value of the window, and is larger by the given ratio: heavy tails widen their
/// own band. No judgement before kLeast steps. The first steps of a run, whose values are far from the later
/// ones, leave the window as soon as there are as many after them. One thread, no memory but its window.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace nanquest {

class Band {
 public:
  static constexpr std::size_t kWindow = 128, kLeast = 48;
  static constexpr double kDeviations = 8, kTail = 2.5;
  /// After an excursion that came back, this many steps long only a larger one is beyond the edge.
  static constexpr std::size_t kRemembers = 4096;
  static constexpr double kLarger = 1.3;
  /// Of the distance to the edge: a value nearer to the middle has come back.
  static constexpr double kBack = 0.5;

  /// Values below `ratio` times the middle are never beyond the edge.
  explicit Band(double ratio) : ratio_(ratio) {}

  /// Distance of `value` above the middle: 1 at the edge; 0 for values that are not above the window's, for
  /// values that are not finite, and before the band is known.
  double above(double value) const;
  /// A good step had this value. Values that are not finite are ignored.
  void take(double value);
  /// An excursion whose largest value lay `distance` above the middle is over.
  void came_back(double distance);
  /// Starts to learn again.
  void forget();

  bool known() const { return taken_ >= kLeast; }
  /// The middle, and two spreads below and above it; and the values at which `above` is kBack and 1. Nothing
  /// before the band is known.
  struct Range {
    double low = 0, middle = 0, high = 0, back = 0, edge = 0;
  };
  std::optional<Range> range() const;

 private:
  using Values = std::array<double, kWindow>;
  struct Fit {
    double middle = 0, spread = 0, edge = 0;
  };

  /// Values in memory, and those of them, the last ones, that are the window.
  std::size_t kept() const { return std::min(taken_, kWindow); }
  std::size_t count() const { return std::min(kept(), std::max(kLeast, taken_ / 2)); }
  double recent(std::size_t i) const { return values_[(taken_ - count() + i) % kWindow]; }
  /// Whether values are compared by their logarithm.
  bool by_logarithm() const;
  double scaled(double value, bool logarithm) const;
  Fit fit(bool logarithm) const;

  double ratio_;
  Values values_{};
  std::size_t taken_ = 0;
  double remembered_ = 0;  ///< distance from the middle that an excursion must exceed
  bool remembered_by_logarithm_ = false;
  std::size_t remembered_until_ = 0;
};

}  // namespace nanquest
