/// run_identity: which run this is: its model, its data and the settings that decide what is trained.
///
///     RunIdentity identity(config, task, say);
///     identity.note_in(state);                         // a state that is about to be written
///     if (Status s = identity.check(state); !s) …      // a state that was read: of another run
#pragma once

#include <functional>
#include <map>
#include <string>

#include "trainer/checkpoint/train_state.h"
#include "trainer/loop/config.h"

namespace nanquest::trainer {

class RunIdentity {
 public:
  /// `config` and `task` must outlive it. `say` gets one line for each setting that differs and may.
  RunIdentity(const LoopConfig& config, const Task& task, std::function<void(const std::string&)> say);

  void note_in(TrainState& state) const;
  /// Whether `state` is of this run, but for `LoopConfig::changes` and the number of steps; `usage` names
  /// what differs.
  Status check(const TrainState& state) const;
  /// The same on all ranks of a run.
  std::string text() const;

 private:
  Status check_settings(const TrainState& state) const;
  /// The schedule is another one if the run is longer or shorter than it was.
  void tell_of_length(const TrainState& state) const;

  const LoopConfig& config_;
  const Task& task_;
  std::function<void(const std::string&)> say_;
  std::map<std::string, std::string> settings_;
};

}  // namespace nanquest::trainer
