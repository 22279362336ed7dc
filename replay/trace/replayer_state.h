/// What a Replayer holds. Private to replay/trace.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "probe/snapshot/reader.h"
#include "replay/trace/machine.h"
#include "replay/trace/plan.h"
#include "replay/trace/replayer.h"
#include "replay/trace/watch.h"

namespace nanquest {

namespace trace {
class Run;
}

struct Replayer::Impl {
  std::optional<SnapshotReader> reader;  ///< or
  SnapshotDoc own_doc;                   ///< the doc of from_memory
  std::optional<trace::TracePlan> planned;
  mutable std::map<std::string, at::Tensor> data;  ///< given, or read so far

  std::optional<SnapshotDoc> unled;   ///< the recorded tables without ops that a run refuted (lead.h)
  std::optional<SnapshotDoc> filled;  ///< with statistics, if the recorded one has none

  const trace::TracePlan& plan() const { return *planned; }
  /// The tables as they were recorded. `doc` has the same rows, maybe with statistics that replay added.
  const SnapshotDoc& recorded() const { return unled ? *unled : reader ? reader->doc() : own_doc; }
  const SnapshotDoc& doc() const { return filled ? *filled : recorded(); }
  /// Fills statistics and culprit of a trace that has neither (statistics.h).
  void complete();
  /// A standing trace with statistics. What lay in memory that nobody had written is not on record: if the
  /// harm comes back only with such memory full of NaN, it is so in all runs from here on.
  SnapshotDoc filled_in();
  /// Replayer::run; `at_end` (may be empty) is called with the run after its last op.
  RunResult run(const RunOptions& options, const std::function<void(trace::Run&)>& at_end,
                const Checkpoint* from = nullptr) const;
  /// A stored tensor; throws std::runtime_error if there is none.
  at::Tensor load(const std::string& path) const;
  trace::DataSource source() const {
    return [this](const std::string& path) { return load(path); };
  }
};

namespace trace {

/// One run, op by op: what Replayer::run does in a loop and `compare` does in lockstep with another.
class Run {
 public:
  /// `impl` and `options` must outlive the run. Needs a RunScope.
  Run(const Replayer::Impl& impl, const RunOptions& options);
  /// Continues from a checkpoint.
  Run(const Replayer::Impl& impl, const RunOptions& options, Checkpoint::State& from);

  /// Runs the next op. `written` (may be null) gets the tensors that it wrote, valid until `finish_op`.
  void step(OpId op, std::vector<at::Tensor>* written = nullptr);
  /// Ends the op: calls its `on_op`, runs the recorded op itself in a local run, and frees memory.
  void finish_op(OpId op);
  /// The row's values as they are now; undefined if there are none, or in a local run. Throws if they can't
  /// be read.
  at::Tensor value(TensorId row);
  /// True if a loss or gradient that is final after `op` is not finite.
  bool harmed_after(OpId op);
  /// What later runs need to start before `op`; this run is not used any more.
  std::shared_ptr<Checkpoint::State> leave(OpId op);
  /// Loss, gradients and totals.
  RunResult finish();

 private:
  void settle(TensorId row, bool& finite, double* value);

  const Replayer::Impl& impl_;
  const RunOptions& options_;
  Machine machine_;
  TraceEdit no_edit_;
  std::optional<Machine> recorded_;  ///< local runs: the bit-exact run that inputs come from
  Watch watch_;
  RunResult result_;
  StepOutcome last_;
  at::Tensor local_loss_;
};

}  // namespace trace

/// The state of a run just before an op.
struct Checkpoint::State {
  OpId op;  ///< the first op that has not run
  trace::SlotStore slots;
  trace::Watch watch;
  RunResult result;
};

namespace trace {

/// fill_statistics, applied to what was recorded. `harmed`: whether the loss or a gradient came out
/// non-finite.
SnapshotDoc fill(const Replayer::Impl& impl, bool* harmed = nullptr);

/// A watched step of a device, whose births were not computed one precision up while it ran.
bool has_unjudged_births(const SnapshotDoc& doc);
/// What was recorded, with its births judged in a run.
SnapshotDoc judge_births(const Replayer::Impl& impl);

/// The ops that a run with these options executes.
IdRange<OpRow> ops_to_run(const SnapshotDoc& doc, const RunOptions& options);

}  // namespace trace
}  // namespace nanquest
