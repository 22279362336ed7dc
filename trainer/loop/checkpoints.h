/// Checkpoints: the files of a run that it can go on from, and when they are written.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/checkpoint/state_files.h"
#include "trainer/loop/config.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

class Checkpoints {
 public:
  /// `config` must outlive it. `writes`: this process does; of several ranks one, in a rehearsal none.
  Checkpoints(const LoopConfig& config, bool writes) : config_(config), writes_(writes) {}

  /// Where they lie, and the weights of that name.
  std::string folder() const { return config_.run_dir + "/checkpoints"; }
  std::string weights(const std::string& name) const { return folder() + "/" + name + ".safetensors"; }
  /// The newest state that can be read; newer ones that can't be are set aside by `open`.
  Result<FoundState> newest();
  /// Makes the folder, and looks after files of an earlier process. The run directory is this run's by now.
  Status open();

  /// The time that `save_minutes` counts from.
  void start_clock() { last_save_ = std::chrono::steady_clock::now(); }
  /// Whether `save_every` or `save_minutes` asks for a state after `step` steps.
  bool is_time(std::int64_t step) const;
  /// Writes a state and notes which it is, also where another rank writes it.
  Status write(const TrainState& state);
  /// Weights and buffers of `task`, with `facts`; `path` gets where. Nothing where this process doesn't
  /// write.
  Status write_weights(const std::string& name, const Task& task,
                       const std::map<std::string, std::string>& facts, std::string& path) const;

  std::string newest_file;                           ///< of the states; "" = none
  std::int64_t saved_step = -1, saved_batches = -1;  ///< of the newest state; -1 = none

 private:
  const LoopConfig& config_;
  bool writes_;
  std::vector<std::string> damaged_;  ///< newer checkpoints that a resume had to pass over
  std::chrono::steady_clock::time_point last_save_ = std::chrono::steady_clock::now();
};

}  // namespace nanquest::trainer
