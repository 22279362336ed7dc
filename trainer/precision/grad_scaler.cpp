#include "trainer/precision/grad_scaler.h"

#include <algorithm>

namespace nanquest::trainer {

GradScaler::GradScaler(const ScalerOptions& options, bool enabled)
    : options_(options),
      scale_(std::clamp(options.initial, options.floor, options.ceiling)),
      patience_(options.hysteresis),
      enabled_(enabled) {}

void GradScaler::change(std::int64_t step, double to) {
  if (to == scale_) return;
  history_.push_back({step, scale_, to});
  scale_ = to;
}

void GradScaler::good_step(std::int64_t step) {
  if (!enabled_) return;
  patience_ = options_.hysteresis;
  if (++good_steps_ < options_.growth_interval) return;
  good_steps_ = 0;
  change(step, std::min(scale_ * options_.growth, options_.ceiling));
}

bool GradScaler::overflow(std::int64_t step) {
  if (!enabled_) return false;
  ++overflows_;
  good_steps_ = 0;
  if (scale_ <= options_.floor) return false;
  if (--patience_ > 0) return true;
  patience_ = options_.hysteresis;
  change(step, std::max(scale_ * options_.backoff, options_.floor));
  return true;
}

void GradScaler::take_back(std::int64_t step, const State& before) {
  if (!enabled_) return;
  change(step, before.scale);
  good_steps_ = before.good_steps;
  patience_ = before.patience;
}

void GradScaler::restore(const State& state) {
  scale_ = state.scale;
  good_steps_ = state.good_steps;
  overflows_ = state.overflows;
  patience_ = state.patience;
  enabled_ = state.enabled;
}

void declare(SettingList& list, ScalerOptions& o) {
  list.group("Precision");
  list.add("init-scale", o.initial, "first loss scale (fp16)");
  list.add("scale-floor", o.floor, "smallest loss scale; an overflow there is an incident");
  list.add("scale-growth-interval", o.growth_interval, "good steps before the scale doubles");
  list.add("scale-hysteresis", o.hysteresis, "overflows before the scale halves");
  list.check([&o] { return check(o); });
}

Status check(const ScalerOptions& o) {
  if (!(o.floor > 0 && o.floor <= o.ceiling) || !(o.initial > 0))
    return Error{ErrorCode::usage, "loss scales must be positive, with a scale-floor of at most 16777216",
                 "try --scale-floor 1"};
  if (o.growth_interval < 1 || o.hysteresis < 1)
    return Error{ErrorCode::usage, "scale-growth-interval and scale-hysteresis must be at least 1",
                 "try 2000 and 1"};
  return {};
}

}  // namespace nanquest::trainer
