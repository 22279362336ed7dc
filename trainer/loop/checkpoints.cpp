#include "trainer/loop/checkpoints.h"

#include <filesystem>
#include <system_error>

#include "trainer/checkpoint/safetensors.h"

namespace nanquest::trainer {

Result<FoundState> Checkpoints::newest() {
  Result<FoundState> found = newest_state(folder());
  if (!found) return found;
  damaged_ = found->damaged;
  newest_file = found->path;
  saved_step = found->state.counters.optimizer_step;
  saved_batches = found->state.counters.data_steps;
  return found;
}

Status Checkpoints::open() {
  std::error_code ec;
  std::filesystem::create_directories(folder(), ec);
  if (ec)
    return Error{ErrorCode::io, config_.run_dir + ": can't be made: " + ec.message(),
                 "choose another --run-dir"};
  remove_half_written(folder());
  for (const std::string& path : damaged_) set_aside(path);
  return {};
}

bool Checkpoints::is_time(std::int64_t step) const {
  if (config_.save_every > 0 && step % config_.save_every == 0) return true;
  const std::chrono::duration<double, std::ratio<60>> passed = std::chrono::steady_clock::now() - last_save_;
  return config_.save_minutes > 0 && passed.count() >= config_.save_minutes;
}

Status Checkpoints::write(const TrainState& state) {
  if (config_.rehearsal) return {};
  const NvtxRange range("checkpoint");
  start_clock();
  if (writes_) {  // all of it is the same on the others
    Result<std::string> path = write_state_file(folder(), state, config_.keep_last);
    start_clock();
    if (!path) return path.error();
    newest_file = *path;
  }
  saved_step = state.counters.optimizer_step;
  saved_batches = state.counters.data_steps;
  return {};
}

Status Checkpoints::write_weights(const std::string& name, const Task& task,
                                  const std::map<std::string, std::string>& facts, std::string& path) const {
  if (!writes_) return {};
  NamedTensors tensors = task.parameters();
  for (const auto& b : task.buffers()) tensors.push_back(b);
  const std::string file = weights(name);
  if (Status s = write_safetensors(file, tensors, facts); !s) return s;
  path = file;
  return {};
}

}  // namespace nanquest::trainer
