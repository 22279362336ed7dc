/// The resumable states of a run: one file each, the last few of them in one folder.
///
///     Result<std::string> path = write_state_file(folder, state, /*keep=*/3);
///     Result<FoundState> found = newest_state(folder);     // damaged ones are passed over, and named
///
/// A file is called state-00000120.safetensors by the batches looked at (`Counters::data_steps`). That number
/// only grows; the step does not, a rollback takes it back.
#pragma once

#include <string>
#include <vector>

#include "trainer/checkpoint/train_state.h"

namespace nanquest::trainer {

/// Writes `state` into `folder`, complete or not at all, and then removes all but the newest `keep` (at least
/// 1). Returns the path. Errors as `write_safetensors`.
Result<std::string> write_state_file(const std::string& folder, const TrainState& state, std::int64_t keep);

/// The files of states in `folder`, the newest first; none if there is no such folder.
std::vector<std::string> state_files(const std::string& folder);

struct FoundState {
  TrainState state;
  std::string path;
  std::vector<std::string> damaged;  ///< files that are newer and not whole
  std::vector<std::string> remarks;  ///< a line about each of them
};

/// The newest state that is whole. `bad_file` if there is none; if all are damaged, with what is wrong with
/// the newest.
Result<FoundState> newest_state(const std::string& folder);

/// Renames `path` to `path`.damaged, so that it is not taken for the newest state again. A failure leaves it.
void set_aside(const std::string& path);

/// Removes what writers that were killed have left in `folder`. Only for who owns the run.
void remove_half_written(const std::string& folder);

}  // namespace nanquest::trainer
