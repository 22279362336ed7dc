// States of a run: cloned, put back, written down.
#include <ATen/ATen.h>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/loop/trainer.h"
#include "trainer/precision/device.h"

namespace nanquest::trainer {

TrainState Trainer::save() const {
  const at::NoGradGuard no_grad;
  TrainState state;
  state.counters = counters_;
  state.scaler = scaler_.state();
  state.fingerprint = fingerprint_;
  for (const auto& [name, p] : task_->parameters())
    state.tensors.emplace_back("model." + name, p.detach().clone());
  for (const auto& [name, b] : task_->buffers())
    state.tensors.emplace_back("buffer." + name, b.detach().clone());
  for (const auto& [name, m] : optimizer_->state()) state.tensors.emplace_back(name, m.clone());
  for (const auto& [name, r] : rng_states(config_.device))
    state.tensors.emplace_back("rng." + name, r.clone());
  return state;
}

Status Trainer::restore(const TrainState& state) {
  const at::NoGradGuard no_grad;
  std::map<std::string, at::Tensor> stored(state.tensors.begin(), state.tensors.end());
  NamedTensors targets;
  for (const auto& [name, p] : task_->parameters()) targets.emplace_back("model." + name, p);
  for (const auto& [name, b] : task_->buffers()) targets.emplace_back("buffer." + name, b);
  for (const auto& [name, m] : optimizer_->state()) targets.emplace_back(name, m);
  for (const auto& [name, target] : targets) {
    const at::Tensor& from = stored[name];
    if (!from.defined() || from.sizes() != target.sizes() || from.scalar_type() != target.scalar_type())
      return Error{ErrorCode::bad_file, "the checkpoint's " + name + " is missing or has another shape",
                   "resume with the settings the run was started with"};
  }
  NamedTensors generators;
  for (auto& [name, now] : rng_states(config_.device)) {
    const at::Tensor& from = stored["rng." + name];
    if (!from.defined() || from.sizes() != now.sizes() || from.scalar_type() != now.scalar_type())
      return Error{ErrorCode::bad_file, "the checkpoint's rng." + name + " is missing or of another kind",
                   "start anew"};
    generators.emplace_back(name, from);
  }
  for (auto& [name, target] : targets) target.copy_(stored[name]);
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
  if (static_cast<std::int64_t>(ring_.size()) > config_.ring_depth) ring_.pop_front();
}

Status Trainer::return_to(const TrainState& good) {
  Counters kept = counters_;
  kept.optimizer_step = good.counters.optimizer_step;
  if (Status s = restore(good); !s) return s;
  counters_ = kept;
  if (counters_.fell_back) {
    amp_ = at::kFloat;
    scaler_.disable();
  }
  return {};
}

std::string Trainer::checkpoint(const std::string& name) const {
  return config_.run_dir + "/checkpoints/" + name + ".safetensors";
}

Status Trainer::write_state() {
  const NvtxRange range("checkpoint");
  const std::string path = checkpoint("state");
  Status s = save_state(path, save());
  if (s) summary_.state_file = path;
  return s;
}

Status Trainer::write_weights(const std::string& name, std::map<std::string, std::string> facts,
                              std::string& path) {
  const std::string file = checkpoint(name);
  NamedTensors weights = task_->parameters();
  for (const auto& b : task_->buffers()) weights.push_back(b);
  facts["step"] = std::to_string(counters_.optimizer_step);
  if (Status s = write_safetensors(file, weights, facts); !s) return s;
  path = file;
  return {};
}

}  // namespace nanquest::trainer
