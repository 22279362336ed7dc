/// What follows a step that is not finite: the policy, and the ladder above it. For any loop; `Trainer` uses
/// one.
///
///     Counters counters;
///     Learned learned(*adamw, {}, at::kCPU);
///     Ladder ladder({.lr_backoff = 0.5}, {}, at::kHalf, learned, counters);
///     Ladder::Answer now;
///     while (counters.optimizer_step < steps && ladder.keep().next != Ladder::Next::stop) {
///       StepReport report = probe->step({.loss_scale = ladder.loss_scale(), …}, [&] { …ladder.format()… });
///       now = ladder.after(report);
///       if (now.next == Ladder::Next::update)
///         now = ladder.updated(probe->update(step, [&] { adamw->step(rate * counters.backoff); }));
///       if (now.next != Ladder::Next::again) next_batch();
///     }
///
/// The probe undoes a step before the ladder gets its report. The rungs from the bottom: the policy's own
/// answer, batches left out, back to a state in memory (the n-th time n states back), the end. The ladder
/// never prints, reads no data and runs no step.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "probe/nanquest.h"
#include "trainer/checkpoint/train_state.h"
#include "trainer/loop/learned.h"
#include "trainer/precision/grad_scaler.h"

namespace nanquest::trainer {

/// What to do after a step whose loss or gradients are not finite. The step itself is always undone first.
enum class Policy : std::uint8_t {
  retry_fp32,     ///< the same batch once more in fp32, then continue as before; skip if that fails too
  skip,           ///< drop the batch
  fallback_fp32,  ///< once: the whole run continues in fp32 with a smaller learning rate; after that, skip
  rollback,       ///< back to the last good state, with the data moved past the bad batch
  stop,           ///< save and end
};

struct LadderOptions {
  Policy policy = Policy::fallback_fp32;
  double lr_backoff = 0.5;          ///< factor of the fp32 fallback
  std::int64_t skip_limit = 5;      ///< consecutive skipped batches before rolling back
  std::int64_t rollback_limit = 2;  ///< rollbacks before stopping
  std::int64_t ring_every = 20;     ///< steps between in-memory states to roll back to
  std::int64_t ring_depth = 3;      ///< how many of them, at most `rollback_limit`
};

/// Names the first invalid option.
Status check(const LadderOptions& options);

/// Callbacks of a loop; each may be empty.
struct LadderListener {
  std::function<void(const std::string&)> say = {};  ///< one line about an event
  /// An attempt has failed for good, and nothing was changed yet.
  std::function<void(const StepReport&)> incident = {};
  /// A state is kept: the owner adds its data beyond tensors, counters and scale.
  std::function<void(TrainState&)> complete = {};
};

class Ladder {
 public:
  enum class Next : std::uint8_t {
    update,   ///< the step is good: clip, update the weights, then call `updated`
    again,    ///< the same batch once more, with the current `format` and `loss_scale`
    advance,  ///< continue with the next batch; the weights are those before step `counters.optimizer_step`
    stop,     ///< no rung is left, or the policy is to stop
  };
  struct Answer {
    Next next = Next::advance;
    bool dropped = false;    ///< the batch was not learned from and will not be
    bool went_back = false;  ///< weights and all other state are now those of an earlier step
    std::string why = {};    ///< for a bad step; "" for a good one and for a scale that was only too large
  };

  /// `format` is that of autocast (kFloat = none); the loss is scaled if it is kHalf. `counters` holds the
  /// ladder's counts and the learning rate's back-off; it must outlive the ladder.
  Ladder(const LadderOptions& options, const ScalerOptions& scaler, at::ScalarType format, Learned learned,
         Counters& counters, LadderListener listener = {});

  /// Before each attempt: every `ring_every` steps keeps a state to return to, once. If the current state is
  /// not finite, rolls back. `stop` also if an earlier answer was `stop`.
  Answer keep();
  /// After an attempt at a batch.
  Answer after(const StepReport& report);
  /// After the update that `after` asked for: counts the step.
  Answer updated(const StepReport& report);

  /// The format of the next attempt, and the factor of its loss.
  at::ScalarType format() const { return once_in_fp32_ ? at::kFloat : format_; }
  double loss_scale() const { return format() == at::kHalf ? scaler_.scale() : 1.0; }
  /// The format of the run, without a retry's.
  at::ScalarType run_format() const { return format_; }
  GradScaler& scaler() { return scaler_; }
  const GradScaler& scaler() const { return scaler_; }

  /// The current state, for `save_state`: handles, not clones.
  TrainState present() const;
  /// Restores a state, for example one of `load_state`; `other_device` as in `Learned::put_back`.
  Status restore(const TrainState& state, bool other_device = false);
  /// The newest state in memory, null if there is none; and restoring it.
  const TrainState* newest() const { return ring_.empty() ? nullptr : &ring_.back(); }
  Status return_to_newest();
  /// Whether weights, buffers or moments were ever found non-finite.
  bool was_corrupt() const { return was_corrupt_; }

 private:
  Answer incident(const StepReport& report);
  Answer fall_back();
  Answer retry_in_fp32();
  Answer skip(const std::string& why);
  /// `dropped`: the current batch is not learned from; `counted`: it was already counted.
  Answer roll_back(const std::string& why, bool dropped, bool counted = false);
  Answer stop(Answer answer);
  /// The state to which the current rollback returns: the n-th returns n states back, so that a run whose
  /// trouble began earlier can recover; the oldest if there are fewer. Newer ones are dropped.
  const TrainState& state_to_go_back_to();
  /// Everything of `good`; of the counters only the optimizer step is restored.
  Status return_to(const TrainState& good);
  void say(const std::string& text) const;

  LadderOptions options_;
  GradScaler scaler_;
  at::ScalarType began_in_, format_;
  Learned learned_;
  Counters* counters_;
  LadderListener listener_;
  std::deque<TrainState> ring_;
  GradScaler::State scale_before_;  ///< when the current batch was first tried
  bool trying_ = false, once_in_fp32_ = false, was_corrupt_ = false, stopped_ = false;
  std::int64_t kept_step_ = -1;  ///< step of the newest kept state; -1 = none
};

}  // namespace nanquest::trainer
