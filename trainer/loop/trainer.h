/// The training loop that survives.
///
///     Result<std::unique_ptr<Trainer>> t = Trainer::create(config, std::move(model), std::move(data),
///     listener); Result<Summary> summary = (*t)->run();
///
/// Order of one step: batch and checks, undo log, forward and backward per micro-batch under autocast, one
/// gate over all gradients, then either clip, update, schedule, scaler, or undo and policy. The gate, the
/// undo log and the capture are the probe's; this loop uses its public header only.
#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "trainer/data/text_data.h"
#include "trainer/loop/config.h"
#include "trainer/model/model.h"

namespace nanquest::trainer {

class Trainer {
 public:
  /// Makes the run directory and the probe; with `resume`, loads its last state. Errors name the path or
  /// setting.
  static Result<std::unique_ptr<Trainer>> create(LoopConfig config, std::unique_ptr<Model> model,
                                                 TextData data, Listener listener);

  /// Trains to the end (or to the stop). Files are written on the way; an error is returned only where going
  /// on makes no sense (disk full at a checkpoint, LibTorch refused an op).
  Result<Summary> run();

  /// Asks `run` to save and return after the current step; callable from a signal handler.
  void request_stop() { stop_requested_ = true; }

  /// Mean loss per target over the held-out windows, without gradients. NaN if there are none.
  double evaluate();

  const Counters& counters() const { return counters_; }
  Model& model() { return *model_; }
  AdamW& optimizer() { return optimizer_; }
  /// Learning rate that the next step will use.
  double next_lr() const { return config_.schedule.lr(counters_.optimizer_step, counters_.backoff); }

  /// A clone of everything that a step may change, and the way back.
  TrainState save() const;
  Status restore(const TrainState& state);

 private:
  enum class Next : std::uint8_t { advance, retry, stop };

  Trainer(LoopConfig config, std::unique_ptr<Model> model, TextData data, Listener listener);
  Status open_probe();
  Status train();
  Result<Next> one_batch();
  StepReport attempt(const Batch& batch, at::ScalarType format);
  at::Tensor compute(const at::Tensor& tokens, const at::Tensor& targets, at::ScalarType format,
                     double scale);
  void inject_into_gradients(at::ScalarType format);
  bool injecting(Injection::Kind kind, at::ScalarType format) const;
  /// Clip and update. Not ok: the update spoiled weights or moments (`state_corrupt`) or was undone because
  /// of it.
  StepReport apply(const StepReport& report);
  Status after_step(const StepReport& report, double lr, double seconds);
  Next incident(const StepReport& report, const Batch& batch);
  Next fall_back(const Batch& batch);
  Next retry_in_fp32(const Batch& batch);
  Next skip(const Batch& batch, const std::string& why);
  Next roll_back(const Batch& batch, const std::string& why);
  /// Weights, moments, buffers, generators and scaler of `good`; of the counters only the optimizer step goes
  /// back.
  Status return_to(const TrainState& good);
  Next stop(const std::string& why);
  void keep_state();
  /// Tells the listener of an attempt that was undone.
  void tell_failed(const StepReport& report) const;
  Status evaluate_and_keep_best(StepEvent& event);
  Status write_state();
  Status finish();
  void say(const std::string& text) const;

  LoopConfig config_;
  std::unique_ptr<Model> model_;
  TextData data_;
  Listener listener_;
  AdamW optimizer_;
  GradScaler scaler_;
  at::ScalarType amp_;
  std::unique_ptr<Probe> probe_;
  std::optional<RunClaim> claim_;  ///< at level off; else the probe has it
  Counters counters_;
  Summary summary_;
  std::deque<TrainState> ring_;
  std::deque<double> recent_losses_;
  bool state_was_corrupt_ = false, stopped_ = false;
  std::atomic<bool> stop_requested_{false};
};

/// "retry_fp32", "skip", … into a policy and back.
std::optional<Policy> policy_from_name(const std::string& name);
const char* policy_name(Policy policy);

}  // namespace nanquest::trainer
