/// Settings of the loop, and what it tells while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "probe/nanquest.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/config/setting_list.h"
#include "trainer/loop/ladder.h"
#include "trainer/optim/schedule.h"
#include "trainer/parallel/group.h"
#include "trainer/precision/grad_scaler.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

/// Deliberate damage, for tests of the harness: from batch `at` on, `count` batches.
struct Injection {
  enum class Kind : std::uint8_t { nan_loss, inf_gradient } kind = Kind::nan_loss;
  std::int64_t at = 0, count = 1;
  bool only_low_precision = false;  ///< not when the batch is computed in fp32
  std::int32_t rank = -1;           ///< of several ranks only on this one; -1 = on all
};

struct LoopConfig : LadderOptions {
  std::int64_t steps = 1000;       ///< optimizer steps of the whole run
  std::int64_t epochs = 0;         ///< passes over the data that `steps_of` counts; 0 = 3
  std::int64_t stop_after = 0;     ///< end (resumably) after so many steps of this process; 0 = don't
  std::int64_t batch_size = 8;     ///< samples per optimizer step
  std::int64_t micro_batches = 1;  ///< parts the batch is split into, gradients accumulated
  Schedule schedule;
  ScalerOptions scaler;
  double grad_clip = 1.0;          ///< largest gradient norm; 0 = no clipping
  std::int64_t eval_every = 50;    ///< 0 = only at the end
  std::int64_t eval_samples = 64;  ///< held-out samples looked at, at most
  std::int64_t save_every = 0;     ///< steps between resumable checkpoints; 0 = by time only
  double save_minutes = 10;        ///< minutes between them; 0 = by steps only. One is written at the end
  std::int64_t keep_last = 3;      ///< of them, how many are kept
  std::string
      quarantine;  ///< file of sample ids that are never used; those of skipped batches are added; "" = none
  /// The next batch is made on a thread of its own while a step runs; the same batches in the same order.
  /// Worth it where making one takes a time that counts (files decoded, pictures scaled), which text in
  /// memory does not.
  bool prefetch = false;
  std::int64_t metrics_every = 1;   ///< steps between lines of run_dir/metrics.jsonl; 0 = no such file
  bool metrics_csv = false;         ///< also run_dir/metrics.csv
  at::Device device{at::kCPU};      ///< that the task's weights are on
  at::ScalarType amp = at::kFloat;  ///< kHalf, kBFloat16, or kFloat for none
  std::string run_dir = "nanquest-run";
  Level level = Level::guard;
  std::int64_t tape = 0;    ///< steps that stay on record without a gap (ProbeOptions::tape); 0 = none
  std::string tape_folder;  ///< ProbeOptions::tape_folder
  FrozenWeights frozen_weights = FrozenWeights::reference;  ///< ProbeOptions::frozen_weights
  bool resume = false;
  /// The processes that train together, each on its share of every batch; null = this one alone. Outlives the
  /// trainer.
  Group* ranks = nullptr;
  std::uint64_t seed = 42;                      ///< of the run
  std::map<std::string, std::string> settings;  ///< all settings as text, for the manifest
  /// Settings of other parts (optimizer, schedule, data) that decide what is trained, as text; the loop's own
  /// are added. A resume with another value than its checkpoint's is refused, unless `changes` names it.
  std::map<std::string, std::string> training;
  std::set<std::string> changes;  ///< keys of settings that a resume may take another value of
  std::vector<Injection> injections;
  /// A try of what a run would do: nothing is written, an incident is not acted on, and the first
  /// ends it.
  bool rehearsal = false;
  std::set<std::string>
      not_yet_quarantined;  ///< of a rehearsal: ids that its run put into `quarantine` later
};

/// Declares the settings of the loop, in the groups Run, Optimizer and Guard. Device, format, schedule and
/// scaler are declared by their own parts.
void declare(SettingList& list, LoopConfig& config);
/// Names the first setting that makes no sense, also of schedule and scaler.
Status check(const LoopConfig& config);

/// Steps of one pass over the task's data.
std::int64_t steps_in_pass(const LoopConfig& config, const Task& task);

/// `config.steps`, or if that is 0 the steps that its epochs take.
std::int64_t steps_of(const LoopConfig& config, const Task& task);

/// Turns "nan-loss@40", "inf-grad@40x5", "nan-loss@40:amp", "nan-loss@40:r1" into an Injection.
Result<Injection> parse_injection(const std::string& text);

/// One line of progress.
struct StepEvent {
  std::int64_t step = 0, steps = 0;
  double loss = 0, grad_norm = 0, scale = 1, lr = 0;
  double seconds = 0, tokens_per_second = 0;  ///< of the step with all its attempts; 0 = not known
  Gate gate = Gate::ok;
  std::string what;              ///< of an attempt that was undone: what was seen, "step 12: the loss is NaN"
  std::vector<Metric> held_out;  ///< empty: not evaluated after this step
  std::optional<double> seconds_left;  ///< until the last step is done; nothing while that is not known
};

/// Who listens. Called on the training thread.
struct Listener {
  std::function<void(const StepEvent&)> on_step;
  std::function<void(const std::string&)> on_message;  ///< something happened: one line
};

/// How a run ended.
struct Summary {
  ExitCode exit = ExitCode::ok;  ///< or what `request_stop` was given
  std::string outcome;           ///< "finished", "stopped: …", "interrupted, resumable"
  Counters counters;
  double first_loss = 0, last_loss = 0;  ///< of the first applied step, mean of the last ones
  std::int64_t averaged = 0;             ///< how many those are, at most 20
  double loss_at_incident = 0;           ///< mean of up to 20 steps before the first incident, 0 = none
  std::int64_t first_incident_step = -1;
  double eval_loss = 0, best_eval_loss = 0;  ///< the task's first metric; 0 = never evaluated
  std::vector<Metric> held_out;              ///< all of the task's metrics, when last evaluated
  double final_lr = 0, final_scale = 1;
  std::string final_format;
  std::vector<std::string> incidents;        ///< snapshot files
  std::vector<std::string> skipped_samples;  ///< ids of dropped samples
  std::vector<ScaleChange> scale_history;
  std::string final_weights, best_weights, state_file;  ///< "" if not written
  /// Folder of what was learned in another program's form, and a command that shows it; "" if there is none.
  /// Filled in by who writes it.
  std::string learned, learned_command;
  double seconds = 0;
};

}  // namespace nanquest::trainer
