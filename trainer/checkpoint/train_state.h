/// Everything that makes a run continue exactly as if it had never stopped.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "trainer/precision/grad_scaler.h"
#include "trainer/task/named_tensors.h"

namespace nanquest::trainer {

/// Counters of a run. A skipped step moves `data_position` and `skipped`, never `optimizer_step`.
struct Counters {
  std::int64_t optimizer_step = 0;  ///< updates applied; the schedule depends on it
  std::int64_t data_position = 0;   ///< next sample of the endless order
  std::int64_t data_steps = 0;      ///< batches looked at
  std::int64_t skipped = 0;         ///< batches dropped
  std::int64_t consecutive_skips = 0;
  std::int64_t incidents = 0;  ///< non-finite steps (a retried one counts once)
  std::int64_t rollbacks = 0;
  std::int64_t tokens = 0;  ///< targets trained on
  bool fell_back = false;   ///< the one-shot fp32 fallback was taken
  bool retried = false;     ///< a step was computed in fp32 once
  double backoff = 1.0;     ///< factor on the learning rate, never lost
  double best_eval = 0;     ///< lowest held-out loss, 0 = none yet
};

/// What a run has reported so far. Nothing is computed from it; a resumed run reports it at its end.
struct Story {
  double first_loss = 0;                     ///< of the first applied step
  std::int64_t first_incident_step = -1;     ///< -1 = none yet
  double loss_at_incident = 0;               ///< mean of up to 20 steps before it
  double last_eval = 0;                      ///< the task's first metric, 0 = none yet
  std::vector<double> recent_losses;         ///< of the last 20 applied steps
  std::vector<std::string> incidents;        ///< snapshot files
  std::vector<std::string> skipped_samples;  ///< ids of dropped samples
  std::vector<ScaleChange> scale_history;
};

/// Tensors of a state: weights by name, buffers and moments, generators. Clones, independent of the run.
struct TrainState {
  Counters counters;
  GradScaler::State scaler;
  NamedTensors tensors;                         ///< "model.…", "buffer.…", "exp_avg.…", "rng.cpu", …
  std::string fingerprint, data_fingerprint;    ///< of the Task
  std::map<std::string, std::string> settings;  ///< settings that affect the training
  Story story;
};

/// Writes one complete checkpoint file, atomically.
Status save_state(const std::string& path, const TrainState& state);

/// Reads it back; `bad_file` names what is missing or damaged. Its checksums must exist.
Result<TrainState> load_state(const std::string& path);

}  // namespace nanquest::trainer
