/// Replayer: runs a recorded step again, op by op through the dispatcher, without any model code.
///
/// Slots become storages, tensor rows become views of them, arguments are rebuilt as the operator's schema
/// says, and the operator is called boxed, with autograd and autocast off and the recorded generator state
/// before seeded ops.
///
/// In another precision every slot has the dtype it was last written in. An op gets its floating inputs cast
/// to the dtype of its own policy, and what it writes in place is kept in the wider of the two dtypes, so
/// that storing never rounds. Random ops run in their recorded dtype (same masks, same noise) and are widened
/// when read.
///
///     Result<Replayer> r = Replayer::open("step-00000131.r0.h5");
///     RunResult same = r->run({});                                   // as recorded
///     RunResult wide = r->run({.precision = Precision::fp64});       // everything in fp64
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "probe/base/result.h"
#include "probe/snapshot/model.h"
#include "probe/trace/graph.h"

namespace nanquest {

class SnapshotReader;

/// What floating tensors are computed in. `bf16`: recorded fp16 becomes bf16 (range without precision),
/// `fp32`: fp16 and bf16 become fp32; `fp64`: every float becomes double.
enum class Precision : std::uint8_t { as_recorded, bf16, fp32, fp64 };

/// One thing changed in a run. Adding a kind of counterfactual means filling one of these.
struct TraceEdit {
  std::map<std::int32_t, Precision> op_precision;  ///< only these ops run in another precision
  std::map<std::string, Precision>
      module_precision;  ///< ops of this module path and everything below it, forward and backward
  /// Called with the rebuilt outside storage (as a 1-D tensor of the slot's dtype) before the run; may change
  /// it in place.
  std::map<std::int32_t, std::function<void(at::Tensor&)>> slot_edit;
  /// Called before the op with its arguments as an IValue stack (already in the op's run dtype). Return false
  /// to run the op on what the stack then holds; return true after replacing the arguments by the op's
  /// returns (the op is not run). Replace a tensor to change what the op reads; writing into one in place
  /// changes the slot for later ops too.
  std::map<std::int32_t, std::function<bool(std::vector<c10::IValue>&)>> op_edit;
  /// Called after the op with what it wrote, one tensor per entry of its `written` range in the op's run
  /// dtype (undefined where there is none): views of the slots, to be changed in place. Not in local runs.
  std::map<std::int32_t, std::function<void(std::vector<at::Tensor>&)>> output_edit;

  /// Replaces the recorded results of an op that can't be run again: `put` is called when they are in place,
  /// with copies of what `reads` held before the op, in this run, and with what the op wrote, to be changed
  /// in place (before `output_edit`). If it throws, what it has not changed is as recorded. It must leave
  /// results unchanged if the op's inputs are as recorded: by itself it changes nothing. Not in local runs.
  struct StandIn {
    std::vector<TensorId> reads;
    std::function<void(const std::vector<at::Tensor>& given, std::vector<at::Tensor>& written)> put;
  };
  std::map<std::int32_t, StandIn> stand_ins;

  /// This edit and after it, where both change the same thing, `next`; of two precisions that of `next`.
  TraceEdit then(const TraceEdit& next) const;

  /// The first op of `graph` whose result can differ from the run as recorded; one past the last if nothing
  /// can.
  OpId first_op(const TraceGraph& graph) const;
};

/// The precision of every op: the op's own entry, otherwise the longest module path that covers it, otherwise
/// `general`.
PerRow<OpRow, Precision> precision_of_ops(const TraceGraph& graph, Precision general, const TraceEdit& edit);

struct RunOptions {
  Precision precision = Precision::as_recorded;
  bool local = false;  ///< each op on its recorded inputs (taken from a bit-exact run), instead of on what
                       ///< the changed run produced
  bool scan = true;    ///< statistics of every written output
  bool hash = false;
  TraceEdit edit = {};
  std::int32_t stop_after = kNone;  ///< last op to run; kNone = all
  /// Where memory that was on a device is when the ops run; memory that was on a CPU stays there. On a CPU,
  /// ops that drew random numbers on a device and ops without a kernel here take their recorded outputs.
  c10::Device device = c10::Device(c10::kCPU);
  /// Ends the run once the loss or a gradient has a non-finite value that is not overwritten: then it is
  /// decided (RunResult::decided_at). Not in local runs.
  bool stop_when_harmed = false;
  /// Rows of doc.tensors whose values at the end are wanted (RunResult::kept).
  std::vector<std::int32_t> keep = {};
  /// Called after each op with its outputs; may copy them at the ops of interest. May be empty.
  std::function<void(std::int32_t op, const std::vector<at::Tensor>& outputs)> on_op = {};
};

/// What one op did in a run.
struct OpOutcome {
  bool ran = false;
  bool kept_format =
      false;  ///< it can't run in the asked precision, and ran as recorded; `error` or `note` says why
  bool substituted = false;  ///< opaque: recorded outputs were used
  std::string error;         ///< message if the op failed
  std::string note;  ///< how this run differs from "the op in the asked precision": "ran as recorded: …"
  std::vector<StatsRow> written;  ///< one per entry of the op's `written` range
};

struct RunResult {
  std::vector<OpOutcome> ops;        ///< index = row of doc.ops
  std::int32_t first_inf = kNone;    ///< first op with finite inputs (as run) that wrote an Inf
  std::int32_t first_nan = kNone;    ///< first op that wrote a NaN out of non-NaN inputs
  std::vector<std::int32_t> births;  ///< all ops with finite inputs and non-finite written outputs
  bool loss_finite = true, gradients_finite = true;
  double loss = 0;
  int failed = 0, substituted = 0;
  int kept_format = 0;              ///< ops that ran as recorded, as they can't run in the asked precision
  std::int32_t decided_at = kNone;  ///< the op after which the run was ended early; kNone: it was not
  std::vector<at::Tensor> kept;  ///< copies, one per entry of RunOptions::keep; undefined where there is none
  double seconds = 0;
  /// Loss finite, every gradient finite and nothing failed.
  bool finite() const { return loss_finite && gradients_finite && failed == 0; }
};

/// The step as recorded up to an op: runs that change nothing before it can start from there. Holds the
/// memory that is alive there; copies share it. Belongs to the replayer that made it.
class Checkpoint {
 public:
  struct State;
  explicit Checkpoint(std::shared_ptr<State> state) : state_(std::move(state)) {}
  /// The first op that has not run.
  std::int32_t op() const;
  std::uint64_t bytes() const;
  /// A tensor row as it is there: a view, not to be written to. Throws std::runtime_error if it is not
  /// available.
  at::Tensor value(std::int32_t tensor) const;
  State& state() const { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

class Replayer {
 public:
  /// Opens a snapshot file. `bad_file` as SnapshotReader::open. If the trace has neither statistics nor a
  /// culprit (a standing trace), the step is run once here, and doc() has both (statistics.h).
  static Result<Replayer> open(const std::string& path);
  /// Replays tables that were never in a file: `data` holds the tensors that the doc names by path (CPU,
  /// contiguous; Recording::data as a map). They are read, never written. Index columns need not be trusted:
  /// an op with a bad one fails. Without `look` a trace without statistics stays so: nothing is run here.
  static Result<Replayer> from_memory(SnapshotDoc doc, std::map<std::string, at::Tensor> data,
                                      bool look = true);
  Replayer(Replayer&&) noexcept;
  Replayer& operator=(Replayer&&) noexcept;
  ~Replayer();

  const SnapshotDoc& doc() const;
  /// False for from_memory: then reader() must not be called.
  bool has_file() const;
  const SnapshotReader& reader() const;
  /// A stored tensor by its path in the file, from either source; shared and cached: don't write into it.
  Result<at::Tensor> tensor(const std::string& path) const;

  /// One run of the whole step. Never throws; ops that fail are in the result. One run at a time per process:
  /// it sets the number of ATen threads and the default generator, and restores both.
  RunResult run(const RunOptions& options) const;
  /// The same run, continuing from `from`; for the part before it the result has the run as recorded. `from`
  /// must be at or before the first op that the options change, and the general precision must be as
  /// recorded; not for local runs.
  RunResult run(const RunOptions& options, const Checkpoint& from) const;
  /// Runs as recorded up to, not including, `op`: from the start, or from an earlier checkpoint. Throws
  /// std::runtime_error on failure.
  Checkpoint checkpoint(std::int32_t op, const Checkpoint* from = nullptr) const;

  /// For the other files of this folder (lockstep runs); the layout is private to replay/trace.
  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Replayer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A stored tensor of a file, on the CPU. Errors as SnapshotReader::read_tensor.
Result<at::Tensor> read_as_tensor(const SnapshotReader& file, const std::string& path);

/// The device on which the step's memory was, as the recording names it: the first that is no "cpu".
std::string recorded_device(const SnapshotDoc& doc);

/// Bit-for-bit comparison with the hash ladder.
struct VerifyResult {
  bool bit_exact = false;
  std::string basis;  ///< "every_output" or "survivors"
  std::int64_t outputs_compared = 0, mismatched = 0, opaque_ops = 0;
  std::int32_t first_mismatch = kNone;  ///< op; `elsewhere` the first outside its bounds, if there is one
  std::int32_t failed_ops = 0;
  std::string recorded_on, replayed_on;  ///< devices: "cuda:0" and "cpu"
  /// Values were compared within bounds: the kinds of device differ, or a device other than a CPU, or a CPU
  /// with other kernels (environment.h), has not given the same bits.
  bool elsewhere = false;
  std::int64_t outside = 0;  ///< outputs that are further off than the bounds (trace/bounds.h) allow
  double bound = 0;          ///< the largest of the bounds, relative
  double distance = 0;       ///< the largest difference within them
  std::vector<std::string> differences;  ///< environment entries that differ from the recording's
  double seconds = 0;
  /// The run that was compared, with statistics; null if it was not on the CPU. A diagnosis starts with it
  /// instead of running the step again (make_case).
  std::shared_ptr<const RunResult> run = {};
};

/// Runs as recorded and compares every written output with its recorded hash (basis "every_output"). If a
/// standing trace recorded none, the tensors that were alive at the gate, loss and gradients, are compared
/// with what they are at the end of the run (basis "survivors"). Outputs of opaque ops are not counted: they
/// are the recorded ones. Runs on `device` (RunOptions::device); what was recorded on another kind of device
/// is compared within bounds as well.
VerifyResult verify(const Replayer& replayer, c10::Device device = c10::Device(c10::kCPU));

}  // namespace nanquest
