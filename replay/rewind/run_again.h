/// run_again: the steps of a tape run once, with one thing changed, watched for losses and for the step that
/// goes bad.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include "probe/snapshot/tape.h"
#include "probe/trace/graph.h"
#include "replay/rewind/numbers.h"
#include "replay/trace/replayer.h"
#include "replay/verdict/rehearsal.h"

namespace nanquest {

/// A tape that can be run, any number of times: its tables. Holds its arguments.
class TapeRunner {
 public:
  /// `bad_step`: the step of the incident; its gradients (doc.gradients) are looked at there. `left_out`: a
  /// step that the tape does not have, reported with an unknown loss; nothing: none. `data` as in
  /// Replayer::from_memory.
  static Result<TapeRunner> make(TapeDoc tape, const std::map<std::string, at::Tensor>& data,
                                 std::int64_t bad_step, std::optional<std::int64_t> left_out = {});

  const SnapshotDoc& doc() const { return replayer_.doc(); }
  const Replayer& replayer() const { return replayer_; }

  /// What to change.
  struct Change {
    Precision precision = Precision::as_recorded;  ///< of every op
    double rate = 1;  ///< every update: weight = before + rate · (after − before)
    /// Updates over which the factor grows to `rate`, the first with a share of 1 / warmup; 0: `rate` from
    /// the first on.
    std::int64_t warmup = 0;
    /// Updates with a larger learning rate are reduced to this one; 0: none is.
    double most_rate = 0;
    /// Largest 2-norm of an update's gradients together; longer ones are scaled down to it. 0: any.
    double clip = 0;
    /// A setting of the optimizer to change.
    std::optional<NumberChange> number = {};
    /// What this step writes into weights and the optimizer's state outside of its update is undone, also
    /// when the step is repeated.
    std::optional<std::int64_t> undo = {};
    /// As TraceEdit::slot_edit.
    std::map<std::int32_t, std::function<void(at::Tensor&)>> slots = {};
    /// Adds to the options of the run what else its caller wants to see of it; must change no value.
    std::function<void(RunOptions&)> look = {};
  };
  /// Fills losses, failed_step and failure of `run`, or why it could not be made (`not_tried`). A run in
  /// which the host would have decided differently (it reads another value than recorded) ends there, and
  /// `failure` says so. Never throws.
  void run(const Change& change, c10::Device device, RehearsedRun& run) const;

 private:
  TapeRunner(Replayer replayer, TapeDoc tape) : replayer_(std::move(replayer)), tape_(std::move(tape)) {}
  friend class Watched;

  Replayer replayer_;
  std::shared_ptr<const TraceGraph> graph_;
  TapeDoc tape_;  ///< without its trace, which the replayer has
  std::int64_t bad_step_ = 0;
  double rate_of_end_ = 0;  ///< the last learning rate up to there, 0 if unknown
  std::optional<std::int64_t> left_out_;
};

}  // namespace nanquest
