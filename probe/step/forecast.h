/// Forecast: what is on its way out of its format's range, and when it will be there.
///
///     if (watched) line = forecast.take(step, recorder.ranges(), …);
///     recorder.look_at(forecast.due(step + 1) ? forecast.nearest() : none);
///
/// Each place (record/range_watch.h) has headroom: log2(largest finite value of its format / largest |x|), in
/// bits. A watched step shows all places; between watched steps those with the least headroom are looked at,
/// now and then while they are far from the end, in every step when they are near. A line through the last
/// values of a place says when its headroom is used up. It is told when that is soon, when the place is near
/// its end already, when the fall is beyond doubt, and when it was so twice in a row: growth by itself is no
/// news (weights and activations grow in every healthy training).
///
/// What can't be foreseen: a failure without growth (a bad sample, a masked row, the first steps).
/// One thread; keeps some kilobytes.
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

/// What is told, and when.
struct ForecastRule {
  double near_bits = 3.5;    ///< no farther than this from the end
  double horizon = 64;     ///< steps until the line reaches it
  double sure = 3;         ///< the slope is so many standard errors from flat
  std::size_t least = 6;   ///< looks at the place
  std::size_t window = 16; ///< … of which so many count
  int in_a_row = 2;
};

/// What was found of a place.
struct Foreseen {
  record::RangePlace place;
  std::int64_t step = 0;  ///< at which
  double amax = 0, bits = 0, slope = 0;
  Reach reach;  ///< steps

  /// "aten::bmm in blocks.3.attention (forward, float16) reaches the end of float16 in about 40 steps (30 to
  /// 70): largest |x| 1.12e+04, 2.5 bits left, 0.06 fewer each step"
  std::string text() const;
};

class Forecast {
 public:
  explicit Forecast(ForecastRule rule = {}) : rule_(rule) {}

  /// What a step showed; its places so far. `whole`: all of them, not only `nearest`. `harmless`: asked before a
  /// place is told: whether an overflow there would do no harm. Returns what is new: nothing as long as the
  /// program knows of a place and none has come near since.
  std::optional<Foreseen> take(std::int64_t step, const std::vector<record::SeenRange>& seen, bool whole,
                               const std::function<bool(const record::RangePlace&)>& harmless);
  /// Whether `nearest` should be looked at in this step.
  bool due(std::int64_t step) const;
  /// Places with the least headroom, a dozen at most; without those whose amax never changes (masks).
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
  bool telling_ = false;     ///< something that was told is still near its end
};

}  // namespace nanquest
