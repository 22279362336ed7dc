/// WatchSpacing: how often a step of level trace is watched, so that watched steps take a share of the run's
/// time. A watched step costs what it takes longer than the others; it is due as often as the share pays for
/// that: one step in 50, 100, 200, 500, 1000, 2000 or 5000.
///
///     WatchSpacing spacing(/*percent=*/1);
///     spacing.took(0.010, /*watched=*/false); spacing.took(0.080, /*watched=*/true);
///     if (WatchSpacing::decides(step)) spacing.from(step, WatchSpacing::next(step), spacing.wanted());
///     if (spacing.due(step)) …
///
/// Times are this process's. Ranks that train together must watch the same steps, so one of them decides; it
/// does so `kAhead` steps before the decision counts, which leaves time to hear of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nanquest {

/// No torch. One thread.
class WatchSpacing {
 public:
  static constexpr int kLeast = 50, kMost = 5000, kAhead = 20;

  /// `percent` of the time is for watched steps; 0: none is ever due.
  explicit WatchSpacing(int percent) : percent_(percent) {}

  /// Whether steps that are not watched are measured at this place: a third of them, early enough for the
  /// next decision.
  static bool measures(std::int64_t step) { return step % kLeast < kLeast - kAhead && step % kLeast >= 3; }
  /// Whether a decision is due in this step, and the step from which it counts.
  static bool decides(std::int64_t step) { return step % kLeast == kLeast - kAhead; }
  static std::int64_t next(std::int64_t step) { return step + kAhead; }

  /// A step took so long. Times that are no numbers above 0 are ignored.
  void took(double seconds, bool watched);
  /// One step in how many should be watched, by what was measured: kLeast as long as it is not known what one
  /// costs.
  int wanted() const;
  /// The share of the time that watched steps take longer than others, as they are spaced at `step`; NaN as
  /// long as that is not known.
  double share(std::int64_t step) const;
  /// From step `first` on, one step in `every` is due; until then what counts at `now`.
  void from(std::int64_t now, std::int64_t first, int every);
  bool due(std::int64_t step) const;

 private:
  struct Turn {
    std::int64_t first = INT64_MAX;
    int every = 0;
  };
  const Turn& at(std::int64_t step) const { return step >= next_.first ? next_ : now_; }

  /// Seconds of the others: their median. There must be some.
  double usual() const;

  int percent_;
  double watched_ = -1;       ///< seconds; below 0: not known
  std::vector<double> last_;  ///< seconds of the last others, the oldest at `oldest_`
  std::size_t oldest_ = 0;
  Turn now_, next_;
};

}  // namespace nanquest
