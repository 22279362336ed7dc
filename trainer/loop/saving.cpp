// What is written down of a run, and when.
#include <chrono>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/state_files.h"
#include "trainer/loop/trainer.h"

namespace nanquest::trainer {
std::string Trainer::checkpoints() const {
  return config_.run_dir + "/checkpoints";
}

std::string Trainer::checkpoint(const std::string& name) const {
  return checkpoints() + "/" + name + ".safetensors";
}

bool Trainer::time_to_save() const {
  if (config_.save_every > 0 && counters_.optimizer_step % config_.save_every == 0) return true;
  const std::chrono::duration<double, std::ratio<60>> passed = std::chrono::steady_clock::now() - last_save_;
  return config_.save_minutes > 0 && passed.count() >= config_.save_minutes;
}

Status Trainer::write_state() {
  return write_state(present());
}

Status Trainer::write_state(const TrainState& state) {
  const NvtxRange range("checkpoint");
  Result<std::string> path = write_state_file(checkpoints(), state, config_.keep_last);
  last_save_ = std::chrono::steady_clock::now();
  if (!path) return path.error();
  summary_.state_file = *path;
  saved_step_ = state.counters.optimizer_step;
  saved_batches_ = state.counters.data_steps;
  return {};
}

void Trainer::save_before_policy() {
  // Batches skipped in a row leave the weights alone: one file serves them all.
  if (saved_step_ == counters_.optimizer_step || !state_is_finite(true)) return;
  if (Status s = write_state(); !s) say("no checkpoint before the policy acts: " + s.error().text());
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
