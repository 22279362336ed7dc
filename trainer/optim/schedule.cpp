#include "trainer/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nanquest::trainer {

double Schedule::shape(std::int64_t step) const {
  if (step < warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  const auto span = static_cast<double>(std::max<std::int64_t>(1, total_steps - warmup_steps));
  const double progress = std::min(1.0, static_cast<double>(step - warmup_steps) / span);
  return floor_ratio + (1.0 - floor_ratio) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

Schedule ScheduleOptions::over(std::int64_t steps) const {
  const std::int64_t rising =
      warmup_ratio > 0 ? std::max<std::int64_t>(1, std::llround(warmup_ratio * static_cast<double>(steps)))
                       : 0;
  return {peak, rising, steps, floor_ratio};
}

void declare(SettingList& list, ScheduleOptions& o) {
  list.group("Optimizer");
  list.add("lr", o.peak, "peak learning rate");
  list.add("warmup-ratio", o.warmup_ratio, "share of the steps in which the rate rises");
  list.add("min-lr-ratio", o.floor_ratio, "where the cosine ends, as a share of the peak");
  list.check([&o] { return check(o); });
}

Status check(const ScheduleOptions& o) {
  if (!(o.warmup_ratio >= 0 && o.warmup_ratio <= 1))
    return Error{ErrorCode::usage, "warmup-ratio must be between 0 and 1", "try 0.03"};
  return check(o.over(1));
}

Status check(const Schedule& s) {
  if (s.peak > 0 && std::isfinite(s.peak)) return {};
  return Error{ErrorCode::usage, "lr must be a positive number", "try 3e-4"};
}

}  // namespace nanquest::trainer
