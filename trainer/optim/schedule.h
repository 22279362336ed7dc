/// Room trainer/optim: how weights move. The learning rate as a function of the step, nothing chained.
#pragma once

#include <cstdint>

namespace nanquest::trainer {

/// Linear warm-up, then half a cosine down to `floor_ratio`·peak. A closed form of the optimizer step, so
/// that a back-off, once taken, is a factor on the whole rest of the curve and can't be overwritten by a
/// later step.
struct Schedule {
  double peak = 3e-4;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 1;
  double floor_ratio = 0.0;

  /// shape(t) in (0, 1]: (t+1)/warmup while t < warmup (so the first step already moves), after that
  /// floor + (1-floor)·(1 + cos(π·(t-warmup)/(total-warmup)))/2; stays at the floor beyond the end.
  double shape(std::int64_t step) const;
  /// peak · shape(step) · backoff.
  double lr(std::int64_t step, double backoff) const { return peak * shape(step) * backoff; }
};

}  // namespace nanquest::trainer
