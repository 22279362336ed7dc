/// The resumable states of a run: one file each, the last few of them in one folder.
///
///     Result<std::string> path = write_state_file(folder, state, /*keep=*/3);
///     Result<FoundState> found = newest_state(folder);     // damaged ones are passed over, and named
///
/// A file is named state-00000120.safetensors by the number of batches looked at (`Counters::data_steps`).
/// That number only grows, while a rollback reduces the step.
#pragma once

#include <string>
#include <vector>

#include "trainer/checkpoint/train_state.h"

namespace nanquest::trainer {

/// Writes `state` into `folder`, completely or not at all, and then removes all but the newest `keep` (at
/// least 1). Returns the path. Errors as in `write_safetensors`.
Result<std::string> write_state_file(const std::string& folder, const TrainState& state, std::int64_t keep);

/// The state files in `folder`, newest first; none if there is no such folder.
std::vector<std::string> state_files(const std::string& folder);

struct FoundState {
  TrainState state;
  std::string path;
  std::vector<std::string> damaged;  ///< newer files that are incomplete
  std::vector<std::string> remarks;  ///< one message for each of them
};

/// The newest complete state. `bad_file` if there is none; if all are damaged, with the fault of the newest.
Result<FoundState> newest_state(const std::string& folder);

/// Renames `path` to `path`.damaged, so that it is not taken for the newest state again. A failure leaves it.
void set_aside(const std::string& path);

/// Removes the files of killed writers in `folder`. Only for the owner of the run.
void remove_half_written(const std::string& folder);

}  // namespace nanquest::trainer
