/// Forecast: which places are about to leave their format's range, and when.
///
///     if (watched) line = forecast.take(step, recorder.ranges(), …);
///     recorder.look_at(forecast.due(step + 1) ? forecast.nearest() : none);
///
/// Each place (record/range_watch.h) has headroom: log2(largest finite value of its format / largest |x|), in
/// bits. A watched step shows all places. Between watched steps, those with the least headroom are looked at:
/// sometimes while they are far from the limit, in every step when they are near. A line through the last
/// values of a place gives the step at which its headroom is used up. A place is reported if that is soon,
/// the place is near its limit already, the fall is significant, and all this was so twice in a row. Growth
/// alone is not reported: weights and activations grow in every healthy training.
///
/// A failure without growth (a bad sample, a masked row, the first steps) can't be forecast. One thread;
/// keeps a few kilobytes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "probe/numerics/trend.h"
#include "probe/record/range_watch.h"

namespace nanquest {

/// What is reported, and when.
struct ForecastRule {
  double near_bits = 3.5;   ///< headroom of at most this many bits
  double horizon = 64;      ///< at most this many steps until the line reaches the limit
  double sure = 3;          ///< the slope is at least this many standard errors from zero
  std::size_t least = 6;    ///< looks at the place
  std::size_t window = 16;  ///< of which at least this many must have met the conditions
  int in_a_row = 2;
};

/// What was found about a place.
struct Foreseen {
  record::RangePlace place;
  std::int64_t step = 0;  ///< at which
  double amax = 0, bits = 0, slope = 0;
  Reach reach;  ///< in steps

  /// "aten::bmm in blocks.3.attention (forward, float16) reaches the end of float16 in about 40 steps (30 to
  /// 70): largest |x| 1.12e+04, 2.5 bits left, 0.06 fewer each step"
  std::string text() const;
};

class Forecast {
 public:
  explicit Forecast(ForecastRule rule = {}) : rule_(rule) {}

  /// Takes what a step showed. `whole`: all places, not only `nearest`. `harmless`: asked before a place is
  /// reported: whether an overflow there would do no harm. Returns what is new: nothing while the program
  /// already knows of a place and no other has come near.
  std::optional<Foreseen> take(std::int64_t step, const std::vector<record::SeenRange>& seen, bool whole,
                               const std::function<bool(const record::RangePlace&)>& harmless);
  /// Whether `nearest` should be looked at in this step.
  bool due(std::int64_t step) const;
  /// At most a dozen places with the least headroom, without those whose amax never changes (masks).
  const std::vector<record::RangePlace>& nearest() const { return nearest_; }

 private:
  struct Track {
    std::deque<std::pair<double, double>> looks;  ///< step, headroom
    int in_a_row = 0;
    bool told = false, harmless = false;
    bool moves() const;
  };
  std::optional<Foreseen> of(const record::SeenRange& range, Track& track, std::int64_t step) const;
  void choose_nearest();

  ForecastRule rule_;
  std::unordered_map<record::RangePlace, Track, record::RangePlace::Hash> tracks_;
  std::vector<record::RangePlace> nearest_;
  std::int64_t last_ = -1;
  double least_bits_ = 1e9;  ///< of `nearest_`
  bool telling_ = false;     ///< a reported place is still near its limit
};

}  // namespace nanquest
