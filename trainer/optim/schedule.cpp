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

}  // namespace nanquest::trainer
