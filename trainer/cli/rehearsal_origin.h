/// Where a rehearsal begins: which run, which of its steps, from which state.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "probe/base/result.h"
#include "trainer/checkpoint/train_state.h"

namespace nanquest::trainer {

/// What the user asks for.
struct OriginWish {
  std::string given;                      ///< a run's folder, or one of its checkpoints
  std::optional<std::int64_t> step = {};  ///< nothing: that of the first incident
  std::int64_t before = 64;               ///< at least this many steps between the state and that step
};

struct Origin {
  std::string run_dir, command;                 ///< of the run
  std::map<std::string, std::string> settings;  ///< all of the run, as text
  std::int64_t step = 0;                        ///< that is asked about
  bool incident = false;                        ///< there is one on record at `step`
  std::int32_t rank = 0;
  std::string snapshot;                     ///< its path, "" if there is none
  std::optional<TrainState> state;          ///< nothing: the beginning of the run
  std::string began;                        ///< the state's file, or "its beginning"
  std::string data_fingerprint;             ///< of the run's data, "" if unknown
  std::set<std::string> quarantined_later;  ///< samples that the run has added to its quarantine since
  std::map<std::int64_t, double> losses;    ///< on record, by step, before `step`

  std::int64_t first_step() const { return state ? state->counters.optimizer_step : 0; }
};

/// The newest state at least `before` steps earlier than the step in question and saved before the incident;
/// the beginning if no checkpoint is that old. Reads only. `bad_file` if it is no run, `usage` for a run
/// without an incident if no step is given.
Result<Origin> find_origin(const OriginWish& wish);

}  // namespace nanquest::trainer
