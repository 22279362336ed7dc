/// Room trainer/loop: the training loop that survives.
///
///     Result<std::unique_ptr<Optimizer>> adamw = make_adamw(task->parameters(), {});
///     Result<std::unique_ptr<Trainer>> trainer =
///         Trainer::create(config, std::move(task), std::move(*adamw), listener);
///     Result<Summary> summary = (*trainer)->run();
///
/// Order of one step: batch, undo log, forward and backward per micro-batch under autocast, one gate over all
/// gradients, then either clip, update, schedule and scaler, or undo and policy. The gate, the undo log and
/// the capture are the probe's; this loop uses its public header only. What is trained, on what and by which
/// rule it knows as a Task and an Optimizer.
/// Never: prints, catches signals, knows of models and files of data.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>

#include "trainer/loop/batch_source.h"
#include "trainer/loop/checkpoints.h"
#include "trainer/loop/config.h"
#include "trainer/loop/health.h"
#include "trainer/loop/injector.h"
#include "trainer/loop/rank_work.h"
#include "trainer/loop/run_identity.h"
#include "trainer/metrics/metrics_log.h"
#include "trainer/metrics/remaining_time.h"
#include "trainer/optim/optimizer.h"
#include "trainer/task/task.h"

namespace nanquest::trainer {

class Trainer {
 public:
  /// Makes the run directory and the probe; with `resume`, loads its last state. `optimizer` must move the
  /// task's parameters. Errors name the path or the setting.
  static Result<std::unique_ptr<Trainer>> create(LoopConfig config, std::unique_ptr<Task> task,
                                                 std::unique_ptr<Optimizer> optimizer, Listener listener);

  /// Trains to the end (or to the stop). Files are written on the way; an error is returned only where going
  /// on makes no sense (disk full at a checkpoint; LibTorch refused an op or memory, or task, optimizer or
  /// listener threw: then a resumable state is written first).
  Result<Summary> run();

  /// Asks `run` to save and return after the current step; a run that this keeps from its end has `exit_code`
  /// as its summary's exit. Callable from a signal handler.
  void request_stop(int exit_code) { stop_code_ = exit_code; }

  /// The task's metrics over the held-out samples, without gradients. Of several ranks all must call it.
  std::vector<Metric> evaluate();

  /// Whether the error that `run` or `create` gave is that of all ranks, so that none waits for this one.
  bool ended_together() const { return together_; }

  const Counters& counters() const { return counters_; }
  Task& task() { return *task_; }
  Optimizer& optimizer() { return *optimizer_; }
  /// Learning rate that the next step will use.
  double next_lr() const { return config_.schedule.lr(counters_.optimizer_step, counters_.backoff); }

  /// A clone of everything that a step may change, and the way back.
  TrainState save() const;
  Status restore(const TrainState& state);
  /// `restore` of a checkpoint's state, if it is of this model, this data and these settings (but for
  /// `LoopConfig::changes`); `usage` names what is not. What the run has reported so far is kept.
  Status go_on_from(const TrainState& state);

 private:
  enum class Next : std::uint8_t { advance, stop };

  Trainer(LoopConfig config, std::unique_ptr<Task> task, std::unique_ptr<Optimizer> optimizer,
          Listener listener);

  // resume.cpp: going on from a checkpoint
  Status resume();
  /// What has been told of the run so far, and telling it on.
  Story story() const;
  void take_up(const Story& story);

  // trainer.cpp: begin and end of a run
  Status open_probe();
  /// Checks what was given, and with `resume` takes up the last state. Writes nothing.
  Status begin();
  /// Claims the run directory and opens what is written there.
  Status open();
  /// Makes the run directory's own files, and looks after those of an earlier process. Not in a rehearsal.
  Status open_files();
  Status train();
  Status end_run();
  Status write_final_weights();
  /// Tells the listener; of several ranks the first does, for all.
  void say(const std::string& text) const;
  /// … what only this rank knows.
  void say_own(const std::string& text) const;

  // step.cpp: one batch
  Result<Next> one_batch();
  StepReport attempt(const Batch& batch, at::ScalarType format);
  /// Forward and backward of every micro-batch; the mean loss over `count` things.
  at::Tensor compute(const NamedTensors& tensors, std::int64_t count, at::ScalarType format, double scale);
  /// Clip and update. Not ok: the update spoiled weights or moments (`state_corrupt`) or was undone because
  /// of it.
  StepReport apply(const StepReport& report);
  bool at_full_rate() const { return counters_.optimizer_step == config_.schedule.warmup_steps; }
  /// What follows a step that was applied, of which `event` tells.
  Status after_step(StepEvent event, const Batch& batch);
  /// Counts the batch as looked at, so that the next one follows.
  void pass_batch();
  /// The line of progress for `report`, at the current step.
  StepEvent event_of(const StepReport& report) const;

  // of several ranks; with one rank nothing
  /// Whether all ranks have their batch, and whether one of them was asked to stop: then all are.
  Status all_ready(const Status& batch);
  /// Whether weights, settings, data and position are the same on all ranks.
  Status same_everywhere();

  // incident.cpp: what the ladder's answers mean to this loop, and what a failure does
  LadderListener ladder_listener();
  /// Notes an attempt that failed for good, before the ladder does anything about it.
  void note_incident(const StepReport& report);
  /// Does what an answer asks of the loop; `batch` null if the answer is to none.
  Next follow(const Ladder::Answer& answer, const Batch* batch);
  Next stop(const std::string& why);
  /// Tells the listener of an attempt that was undone.
  void tell_failed(const StepReport& report) const;
  /// What came of going back to an older state.
  void went_back();

  Status write_state();
  /// A checkpoint of what was before an incident's policy changes anything; a failure is only told.
  void save_before_policy();
  /// What the end of a run by `e` is called, after saving what there is of it.
  Error failed(const std::exception& e);
  /// Writes the present state if it is consistent, otherwise the newest one that is kept in memory.
  void save_before_ending();
  /// Weights and buffers, with `facts`, as the checkpoint NAME; `path` gets where.
  Status write_weights(const std::string& name, std::map<std::string, std::string> facts, std::string& path);

  // numbers.cpp
  /// Evaluates, and writes the weights down if they are the best so far.
  Status evaluate_and_keep_best(StepEvent& event);
  /// What a line of the metrics says of a step that was applied; all names, also of what is not known.
  Numbers numbers_of(const StepEvent& event) const;
  void write_metrics(const StepEvent& event);
  /// The line of the last step again, now that its weights were evaluated.
  void rewrite_last_metrics();

  LoopConfig config_;
  Group* ranks_;  ///< of the config, or nobody_else
  RankWork rank_work_;
  std::unique_ptr<Task> task_;
  std::unique_ptr<Optimizer> optimizer_;
  Listener listener_;
  Counters counters_;
  Learned learned_;
  Ladder ladder_;
  std::vector<AttentionHeads> attention_;  ///< whose logits are looked at
  RunIdentity identity_;
  Injector injector_;
  std::unique_ptr<Probe> probe_;
  std::optional<RunClaim> claim_;  ///< at level off; else the probe has it
  Summary summary_;
  std::deque<double> recent_losses_;
  Checkpoints checkpoints_;
  BatchSource batches_;
  MetricsFiles metrics_;  ///< none where the run writes no metrics
  ClipWatch clip_watch_;
  StepEvent last_event_;  ///< of the last step that this process has applied; `steps` 0 = none
  RemainingTime remaining_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  bool state_was_corrupt_ = false, stopped_ = false;
  std::int32_t whose_ = -1;  ///< rank that an incident began on and that tells of it; -1 = none known
  bool together_ = false, stop_agreed_ = false;
  /// False while the weights, and what counts how often they moved, don't agree.
  bool consistent_ = true;
  std::atomic<int> stop_code_{0};  ///< that a stop was asked for with; 0 = none was
};

/// Mean of `values`, 0 if there are none.
double mean(const std::deque<double>& values);

}  // namespace nanquest::trainer
