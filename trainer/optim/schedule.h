/// The learning rate as a closed function of the step.
#pragma once

#include <cstdint>
#include <string>

#include "probe/base/result.h"
#include "trainer/config/setting_list.h"

namespace nanquest::trainer {

/// How the rate decays after the warm-up.
enum class Decay : std::uint8_t {
  cosine,    ///< half a cosine down to the floor
  linear,    ///< a straight line down to the floor
  constant,  ///< no decay
  wsd,       ///< warm-up, stable, decay: constant, then a straight line in the last `decay_steps`
};

/// Linear warm-up, then decay to `floor_ratio`·peak. A closed form of the optimizer step, so that a back-off
/// is a factor on the whole rest of the curve and a later step can't overwrite it.
struct Schedule {
  double peak = 3e-4;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;
  double floor_ratio = 0.0;
  Decay decay = Decay::cosine;
  std::int64_t decay_steps = 0;  ///< for wsd: number of last steps with decay

  /// shape(t) in (0, 1]: (t+1)/warmup while t < warmup (so the first step already changes weights). After
  /// that, with p the share of the decay steps that is over: floor + (1-floor)·(1 + cos(π·p))/2 for cosine,
  /// floor + (1-floor)·(1-p) for linear and wsd, 1 for constant. Constant after the end.
  double shape(std::int64_t step) const;
  /// peak · shape(step) · backoff.
  double lr(std::int64_t step, double backoff) const { return peak * shape(step) * backoff; }
};

/// The schedule as a person gives it, before the number of steps is known.
struct ScheduleOptions {
  double peak = 3e-4;
  double warmup_ratio = 0.03;  ///< share of the steps with a rising rate
  double floor_ratio = 0.0;    ///< final rate as a share of the peak
  Decay decay = Decay::cosine;
  double decay_ratio = 0.1;  ///< for wsd: share of the steps with decay

  /// The schedule for a run of `steps` steps. A warm-up has at least one, so that the very first update does
  /// not use the full rate.
  Schedule over(std::int64_t steps) const;
};

/// Declares the learning rate's settings, in the group Optimizer.
void declare(SettingList& list, ScheduleOptions& options);
/// Names the first invalid setting.
Status check(const ScheduleOptions& options);
Status check(const Schedule& schedule);
/// "cosine", "linear", "constant" or "wsd".
std::string word_for(Decay decay);

}  // namespace nanquest::trainer
