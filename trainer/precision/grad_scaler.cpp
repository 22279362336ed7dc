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

void GradScaler::restore(const State& state) {
  scale_ = state.scale;
  good_steps_ = state.good_steps;
  overflows_ = state.overflows;
  patience_ = state.patience;
  enabled_ = state.enabled;
}

}  // namespace nanquest::trainer
