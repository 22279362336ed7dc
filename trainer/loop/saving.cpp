// What is written down of a run: when, and what of it when something fails.
#include <c10/util/Exception.h>

#include <chrono>
#include <new>
#include <string_view>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/state_files.h"
#include "trainer/loop/trainer.h"

namespace nanquest::trainer {
namespace {

bool out_of_memory(const std::exception& e) {
  return dynamic_cast<const std::bad_alloc*>(&e) != nullptr ||
         dynamic_cast<const c10::OutOfMemoryError*>(&e) != nullptr ||
         // How the CPU's allocator says it.
         std::string_view(e.what()).find("can't allocate memory") != std::string_view::npos;
}

std::string first_line(const std::exception& e) {
  const auto* torch = dynamic_cast<const c10::Error*>(&e);
  const std::string text = torch != nullptr ? torch->what_without_backtrace() : e.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

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
  return write_state(ladder_.present());
}

Status Trainer::write_state(const TrainState& state) {
  if (config_.rehearsal) return {};
  const NvtxRange range("checkpoint");
  last_save_ = std::chrono::steady_clock::now();
  if (ranks_->first()) {  // all of it is the same on the others
    Result<std::string> path = write_state_file(checkpoints(), state, config_.keep_last);
    last_save_ = std::chrono::steady_clock::now();
    if (!path) return path.error();
    summary_.state_file = *path;
  }
  saved_step_ = state.counters.optimizer_step;
  saved_batches_ = state.counters.data_steps;
  return {};
}

void Trainer::save_before_policy() {
  // Batches skipped in a row leave the weights alone: one file serves them all.
  if (saved_step_ == counters_.optimizer_step || !learned_.finite(true)) return;
  if (Status s = write_state(); !s) say("no checkpoint before the policy acts: " + s.error().text());
}

Error Trainer::failed(const std::exception& e) {
  const std::string at = "step " + std::to_string(counters_.optimizer_step) + ": ", text = first_line(e);
  const bool memory = out_of_memory(e);
  try {
    save_before_ending();
  } catch (const std::exception& again) {
    say("nothing could be saved: " + first_line(again));
  }
  if (memory)
    return {ErrorCode::internal, at + "out of memory: " + text,
            "--accumulation computes a batch in smaller parts; with --resume as --set accumulation=N"};
  const bool torch = dynamic_cast<const c10::Error*>(&e) != nullptr;
  return {ErrorCode::internal, at + (torch ? "LibTorch refused an operation: " : "") + text, ""};
}

void Trainer::save_before_ending() {
  optimizer_->clear_gradients();
  // What failed in the middle of an update has moved some weights and not others.
  const bool as_it_is = consistent_ && learned_.finite(true);
  Status saved;
  if (as_it_is) {
    saved = write_state();
  } else if (const TrainState* kept = ladder_.newest();
             kept != nullptr && kept->counters.data_steps > saved_batches_) {
    saved = write_state(*kept);
  }
  if (!saved) {
    say("nothing could be saved: " + saved.error().text());
  } else if (!summary_.state_file.empty()) {
    say("saved: " + summary_.state_file + "; --resume goes on from step " + std::to_string(saved_step_));
  }
}

Status Trainer::write_weights(const std::string& name, std::map<std::string, std::string> facts,
                              std::string& path) {
  if (config_.rehearsal || !ranks_->first()) return {};
  const std::string file = checkpoint(name);
  NamedTensors weights = task_->parameters();
  for (const auto& b : task_->buffers()) weights.push_back(b);
  facts["step"] = std::to_string(counters_.optimizer_step);
  if (Status s = write_safetensors(file, weights, facts); !s) return s;
  path = file;
  return {};
}

}  // namespace nanquest::trainer
