#include "trainer/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace nanquest::trainer {
namespace {

constexpr std::pair<Decay, std::string_view> kDecays[] = {
    {Decay::cosine, "cosine"}, {Decay::linear, "linear"}, {Decay::constant, "constant"}, {Decay::wsd, "wsd"}};

}  // namespace

double Schedule::shape(std::int64_t step) const {
  if (step < warmup_steps) return static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  if (decay == Decay::constant) return 1.0;
  const std::int64_t falls_from =
      decay == Decay::wsd ? std::max(warmup_steps, total_steps - decay_steps) : warmup_steps;
  const auto span = static_cast<double>(std::max<std::int64_t>(1, total_steps - falls_from));
  const double over = std::clamp(static_cast<double>(step - falls_from) / span, 0.0, 1.0);
  const double left = decay == Decay::cosine ? 0.5 * (1.0 + std::cos(std::numbers::pi * over)) : 1.0 - over;
  return floor_ratio + (1.0 - floor_ratio) * left;
}

Schedule ScheduleOptions::over(std::int64_t steps) const {
  const std::int64_t rising =
      warmup_ratio > 0 ? std::max<std::int64_t>(1, std::llround(warmup_ratio * static_cast<double>(steps)))
                       : 0;
  const auto falling = std::max<std::int64_t>(1, std::llround(decay_ratio * static_cast<double>(steps)));
  return {peak, rising, steps, floor_ratio, decay, falling};
}

void declare(SettingList& list, ScheduleOptions& o) {
  list.group("Optimizer");
  list.add("lr", o.peak, "peak learning rate");
  list.add("warmup-ratio", o.warmup_ratio, "share of the steps in which the rate rises");
  list.add("min-lr-ratio", o.floor_ratio, "where the rate ends, as a share of the peak");
  list.add("schedule", o.decay, "how the rate falls: cosine, linear, constant, wsd (warm-up, stable, decay)",
           Words<Decay>(kDecays));
  list.add("decay-ratio", o.decay_ratio, "share of the steps in which wsd's rate falls");
  list.check([&o] { return check(o); });
}

Status check(const ScheduleOptions& o) {
  if (!(o.warmup_ratio >= 0 && o.warmup_ratio <= 1))
    return Error{ErrorCode::usage, "warmup-ratio must be between 0 and 1", "try 0.03"};
  if (!(o.decay_ratio > 0 && o.decay_ratio <= 1))
    return Error{ErrorCode::usage, "decay-ratio must be above 0 and at most 1", "try 0.1"};
  return check(o.over(1));
}

Status check(const Schedule& s) {
  if (s.peak > 0 && std::isfinite(s.peak)) return {};
  return Error{ErrorCode::usage, "lr must be a positive number", "try 3e-4"};
}

std::string word_for(Decay decay) {
  return word_of(decay, Words<Decay>(kDecays));
}

}  // namespace nanquest::trainer
