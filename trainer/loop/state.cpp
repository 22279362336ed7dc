// States of a run: cloned, put back, written down.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "trainer/loop/trainer.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {

NamedTensors Trainer::learned() const {
  NamedTensors all;
  for (const auto& [name, p] : task_->parameters()) all.emplace_back("model." + name, p.detach());
  for (const auto& [name, b] : task_->buffers()) all.emplace_back("buffer." + name, b.detach());
  for (const auto& moment : optimizer_->state()) all.push_back(moment);
  return all;
}

TrainState Trainer::present() const {
  TrainState state{counters_,
                   scaler_.state(),
                   learned(),
                   task_->fingerprint(),
                   task_->data_fingerprint(),
                   settings_on_record(),
                   story()};
  for (const auto& [name, r] : rng_states(config_.device)) state.tensors.emplace_back("rng." + name, r);
  return state;
}

TrainState Trainer::save() const {
  TrainState state = present();
  for (auto& [name, t] : state.tensors) t = t.clone();
  return state;
}

Status Trainer::restore(const TrainState& state) {
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> stored(state.tensors.begin(), state.tensors.end());
  const auto find = [&](const std::string& name, const at::Tensor& now) {
    const auto found = stored.find(name);
    const bool same = found != stored.end() && found->second.sizes() == now.sizes() &&
                      found->second.scalar_type() == now.scalar_type();
    return same ? found->second : at::Tensor();
  };
  const NamedTensors targets = learned();
  for (const auto& [name, target] : targets)
    if (!find(name, target).defined())
      return Error{ErrorCode::bad_file, "the checkpoint's " + name + " is missing or has another shape",
                   "resume with the settings the run was started with"};
  NamedTensors generators = rng_states(config_.device);
  for (auto& [name, generator] : generators) {
    const at::Tensor found = find("rng." + name, generator);
    // A device that the run was not on before has no state to go on from: its generator stays as it is.
    if (!found.defined() && config_.changes.contains("device") && !stored.contains("rng." + name)) continue;
    generator = found;
    if (!generator.defined())
      return Error{ErrorCode::bad_file, "the checkpoint's rng." + name + " is missing or of another kind",
                   "start anew"};
  }
  for (const auto& [name, target] : targets) target.copy_(find(name, target));
  set_rng_states(config_.device, generators);
  optimizer_->clear_gradients();
  counters_ = state.counters;
  scaler_.restore(state.scaler);
  amp_ = counters_.fell_back ? at::kFloat : config_.amp;
  return {};
}

bool Trainer::state_is_finite(bool moments) const {
  return all_finite(task_->parameters()) && all_finite(task_->buffers()) &&
         (!moments || all_finite(optimizer_->state()));
}

void Trainer::remember_state() {
  if (!state_is_finite(true)) {
    (void)roll_back({}, "the state to be kept is not finite");
    return;
  }
  ring_.push_back(save());
  // The n-th rollback goes n states back, so more than there may be rollbacks are of no use.
  const std::int64_t depth = std::max<std::int64_t>(1, std::min(config_.ring_depth, config_.rollback_limit));
  while (static_cast<std::int64_t>(ring_.size()) > depth) ring_.pop_front();
}

const TrainState& Trainer::state_to_go_back_to() {
  const auto back = static_cast<std::size_t>(counters_.rollbacks);
  const std::size_t keep = ring_.size() - std::min(back, ring_.size()) + 1;
  // What came after it is of a future that won't be.
  ring_.erase(ring_.begin() + static_cast<std::ptrdiff_t>(keep), ring_.end());
  return ring_.back();
}

Status Trainer::return_to(const TrainState& good) {
  Counters kept = counters_;
  kept.optimizer_step = good.counters.optimizer_step;
  if (Status s = restore(good); !s) return s;
  counters_ = kept;
  consistent_ = true;
  each_metrics_file([&](MetricsLog& log) { return log.cut(counters_.optimizer_step); });
  saved_step_ = -1;  // what is at that step from now on is something else
  if (counters_.fell_back) {
    amp_ = at::kFloat;
    scaler_.disable();
  }
  return {};
}

}  // namespace nanquest::trainer
