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

#include <chrono>
#include <memory>
#include <optional>

#include "trainer/loop/agreement.h"
#include "trainer/loop/batch_source.h"
#include "trainer/loop/checkpoints.h"
#include "trainer/loop/computation.h"
#include "trainer/loop/config.h"
#include "trainer/loop/health.h"
#include "trainer/loop/rank_work.h"
#include "trainer/loop/run_account.h"
#include "trainer/loop/run_identity.h"
#include "trainer/loop/run_metrics.h"
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
  void request_stop(int exit_code) { agreement_.request_stop(exit_code); }

  /// The task's metrics over the held-out samples, without gradients. Of several ranks all must call it.
  std::vector<Metric> evaluate();

  /// Whether the error that `run` or `create` gave is that of all ranks, so that none waits for this one.
  bool ended_together() const { return agreement_.ended_together(); }

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

  // trainer.cpp: how a run begins, goes on from a checkpoint, and ends
  /// Checks what was given, and with `resume` takes up the last state. Writes nothing.
  Status begin();
  Status resume();
  /// Claims the run directory and opens what is written there.
  Status open();
  /// What this process knows beyond the ladder, for a state that is about to be written.
  void complete(TrainState& state) const;
  Status train();
  /// Whether weights, settings, data and position are the same on all ranks; with one rank at once.
  Status same_everywhere();
  Status end_run();
  ExitCode exit_code(bool complete) const;
  Status write_final_weights();
  /// Writes the present state if it is consistent, otherwise the newest one that is kept in memory.
  void save_before_ending();
  /// What the end of a run by `e` is called, after saving what there is of it.
  Error failed(const std::exception& e);
  Status write_state() { return checkpoints_.write(ladder_.present()); }
  /// Weights and buffers, with `facts`, as the checkpoint NAME; `path` gets where.
  Status write_weights(const std::string& name, std::map<std::string, std::string> facts, std::string& path);
  /// Tells the listener; of several ranks the first does, for all.
  void say(const std::string& text) const;
  /// … what only this rank knows.
  void say_own(const std::string& text) const;

  // step.cpp: one batch, and what follows of it
  Result<Next> one_batch();
  StepReport attempt(const Batch& batch);
  /// Clip and update. Not ok: the update spoiled weights or moments (`state_corrupt`) or was undone because
  /// of it.
  StepReport apply(const StepReport& report);
  /// What follows a step that was applied, of which `event` tells.
  Status after_step(StepEvent event, const Batch& batch);
  /// Evaluates, and writes the weights down if they are the best so far.
  Status evaluate_and_keep_best(StepEvent& event);
  /// Counts the batch as looked at, so that the next one follows.
  void pass_batch();
  /// The line of progress for `report`, at the current step.
  StepEvent event_of(const StepReport& report) const;
  /// Does what an answer of the ladder asks of the loop; `batch` null if the answer is to none.
  Next follow(const Ladder::Answer& answer, const Batch* batch);
  /// What came of going back to an older state.
  void went_back();
  LadderListener ladder_listener();
  /// Notes an attempt that failed for good, before the ladder does anything about it.
  void note_incident(const StepReport& report);
  /// A checkpoint of what was before an incident's policy changes anything; a failure is only told.
  void save_before_policy();
  /// Tells the listener of an attempt that was undone.
  void tell_failed(const StepReport& report) const;

  LoopConfig config_;
  Group* ranks_;  ///< of the config, or nobody_else
  RankWork rank_work_;
  Agreement agreement_;
  std::unique_ptr<Task> task_;
  std::unique_ptr<Optimizer> optimizer_;
  Listener listener_;
  Counters counters_;
  Learned learned_;
  Ladder ladder_;
  Computation computation_;
  RunIdentity identity_;
  std::unique_ptr<Probe> probe_;
  std::optional<RunClaim> claim_;  ///< at level off; else the probe has it
  RunAccount account_;
  Checkpoints checkpoints_;
  BatchSource batches_;
  RunMetrics metrics_;
  HealthWatch health_;
  StepEvent last_event_;  ///< of the last step that this process has applied; `steps` 0 = none
  RemainingTime remaining_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  bool state_was_corrupt_ = false, stopped_ = false;
  std::int32_t whose_ = -1;  ///< rank that an incident began on and that tells of it; -1 = none known
  /// False while the weights, and what counts how often they moved, don't agree.
  bool consistent_ = true;
};

}  // namespace nanquest::trainer
