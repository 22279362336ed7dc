/// What follows a step that is not finite: the policy, and the ladder above it. For any loop; `Trainer` has
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
/// Steps are undone by the probe before the ladder hears of them. From the bottom: the policy's own answer,
/// batches left out, back to a state in memory (the n-th time n states back), the end.
/// Never: prints, reads data, runs a step.
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

/// What to do about a step whose loss or gradients are not finite. The step itself is always undone first.
enum class Policy : std::uint8_t {
  retry_fp32,     ///< the same batch once more in fp32, then on as before; skip if that fails too
  skip,           ///< drop the batch
  fallback_fp32,  ///< once: the whole run goes on in fp32 with a smaller learning rate; after that, skip
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

/// Names the first option that makes no sense.
Status check(const LadderOptions& options);

/// What a loop wants to hear; each may be empty.
struct LadderListener {
  std::function<void(const std::string&)> say = {};  ///< something happened: one line
  /// An attempt has failed for good, and nothing was changed yet.
  std::function<void(const StepReport&)> incident = {};
  /// A state is kept: what its owner wants to find in it beyond tensors, counters and scale.
  std::function<void(TrainState&)> complete = {};
};

class Ladder {
 public:
  enum class Next : std::uint8_t {
    update,   ///< the step is good: clip, move the weights, then ask `updated`
    again,    ///< the same batch once more, with the `format` and `loss_scale` of now
    advance,  ///< on to the next batch; the weights are those before step `counters.optimizer_step`
    stop,     ///< no rung is left, or the policy says so
  };
  struct Answer {
    Next next = Next::advance;
    bool dropped = false;    ///< the batch was not learned from and won't be
    bool went_back = false;  ///< weights and all else are those of an earlier step now
    std::string why = {};    ///< of a bad step; "" for a good one and for a scale that was only too large
  };

  /// `format` is that of autocast (kFloat = none); the loss is scaled where it is kHalf. `counters` is what
  /// the ladder counts in and what the learning rate's back-off is in; it must outlive the ladder.
  Ladder(const LadderOptions& options, const ScalerOptions& scaler, at::ScalarType format, Learned learned,
         Counters& counters, LadderListener listener = {});

  /// Before each attempt: every `ring_every` steps keeps a state to go back to, once. If the state is not
  /// finite it is gone back from. `stop` also where an earlier answer was that.
  Answer keep();
  /// After an attempt at a batch.
  Answer after(const StepReport& report);
  /// After the update that `after` asked for: counts the step.
  Answer updated(const StepReport& report);

  /// What to compute the next attempt in, and what to multiply its loss with.
  at::ScalarType format() const { return once_in_fp32_ ? at::kFloat : format_; }
  double loss_scale() const { return format() == at::kHalf ? scaler_.scale() : 1.0; }
  /// The format of the run, without a retry's.
  at::ScalarType run_format() const { return format_; }
  GradScaler& scaler() { return scaler_; }
  const GradScaler& scaler() const { return scaler_; }

  /// Everything as it is now, for `save_state`: handles, not clones.
  TrainState present() const;
  /// Takes up a state, for example one of `load_state`; `other_device` as `Learned::put_back`.
  Status restore(const TrainState& state, bool other_device = false);
  /// The newest state in memory, null if there is none, and the way back to it.
  const TrainState* newest() const { return ring_.empty() ? nullptr : &ring_.back(); }
  Status return_to_newest();
  /// Whether weights, buffers or moments were found non-finite, ever.
  bool was_corrupt() const { return was_corrupt_; }

 private:
  Answer incident(const StepReport& report);
  Answer fall_back();
  Answer retry_in_fp32();
  Answer skip(const std::string& why);
  /// `dropped`: the batch at hand is not learned from; `counted`: that was counted already.
  Answer roll_back(const std::string& why, bool dropped, bool counted = false);
  Answer stop(Answer answer);
  /// The state that the rollback just counted goes back to: the n-th goes n states back, so that a run whose
  /// trouble began earlier gets out of it; the oldest there is if that is too far. Newer ones are dropped.
  const TrainState& state_to_go_back_to();
  /// Everything of `good`; of the counters only the optimizer step goes back.
  Status return_to(const TrainState& good);
  void say(const std::string& text) const;

  LadderOptions options_;
  GradScaler scaler_;
  at::ScalarType began_in_, format_;
  Learned learned_;
  Counters* counters_;
  LadderListener listener_;
  std::deque<TrainState> ring_;
  GradScaler::State scale_before_;  ///< when the batch at hand was first tried
  bool trying_ = false, once_in_fp32_ = false, was_corrupt_ = false, stopped_ = false;
  std::int64_t kept_step_ = -1;  ///< of the newest state that is kept; -1 = none
};

}  // namespace nanquest::trainer
