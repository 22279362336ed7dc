/// The learning rate as a function of the step, nothing chained.
#pragma once

#include <cstdint>
#include <string>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"

namespace nanquest::trainer {

/// How the rate falls after the warm-up.
enum class Decay : std::uint8_t {
  cosine,    ///< half a cosine down to the floor
  linear,    ///< a straight line down to the floor
  constant,  ///< not at all
  wsd,       ///< warm-up, stable, decay: not at all, then in the last `decay_steps` a straight line
};

/// Linear warm-up, then down to `floor_ratio`·peak. A closed form of the optimizer step, so that a back-off,
/// once taken, is a factor on the whole rest of the curve and can't be overwritten by a later step.
struct Schedule {
  double peak = 3e-4;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;
  double floor_ratio = 0.0;
  Decay decay = Decay::cosine;
  std::int64_t decay_steps = 0;  ///< of wsd: how many of the last steps fall

  /// shape(t) in (0, 1]: (t+1)/warmup while t < warmup (so the first step already moves). After that, with
  /// p the share of the falling steps that is over: floor + (1-floor)·(1 + cos(π·p))/2 for cosine,
  /// floor + (1-floor)·(1-p) for linear and wsd, 1 for constant. Stays there beyond the end.
  double shape(std::int64_t step) const;
  /// peak · shape(step) · backoff.
  double lr(std::int64_t step, double backoff) const { return peak * shape(step) * backoff; }
};

/// The schedule as a person gives it, before the number of steps is known.
struct ScheduleOptions {
  double peak = 3e-4;
  double warmup_ratio = 0.03;  ///< share of the steps in which the rate rises
  double floor_ratio = 0.0;    ///< where it ends, as a share of the peak
  Decay decay = Decay::cosine;
  double decay_ratio = 0.1;  ///< of wsd: share of the steps in which the rate falls

  /// The schedule of a run of `steps` steps. A warm-up has at least one, so that the very first update is not
  /// at the full rate.
  Schedule over(std::int64_t steps) const;
};

/// Declares the learning rate's settings, in the group Optimizer.
void declare(SettingList& list, ScheduleOptions& options);
/// Names the first setting that makes no sense.
Status check(const ScheduleOptions& options);
Status check(const Schedule& schedule);
/// "cosine", "linear", "constant" or "wsd".
std::string word_for(Decay decay);

}  // namespace nanquest::trainer
