/// Case: one incident under examination: its tables, and the means to run the step again.
///
/// Causes see only a Case, so that they can be tested with hand-made tables and a hand-made `run`. Statements
/// about values are based on values that the Case read itself, by running the step as recorded up to the op,
/// never on names or statistics alone.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/blame/blame.h"
#include "replay/blame/harm.h"
#include "replay/trace/replayer.h"
#include "replay/verdict/words.h"

namespace nanquest {

/// The arguments and results of one op in the run as recorded: copies, owned by the Case. An op on lists
/// (foreach, fused optimizers) has as many calls as its lists are long; this is one of them.
struct OpValues {
  std::vector<c10::IValue> arguments;  ///< one per schema argument, as they were before the op ran
  std::vector<at::Tensor> outputs;     ///< its returned values; for an op that returns nothing what it wrote,
                                       ///< for a compiled region both

  /// The first output that holds something non-finite, otherwise the first; undefined if there is none.
  at::Tensor bad_output() const;
};

class Case {
 public:
  using Run = std::function<RunResult(const RunOptions&)>;
  /// Reads a stored tensor by its path in the file; nothing if there is none.
  using Read = std::function<std::optional<at::Tensor>(const std::string& path)>;

  /// `doc.culprit` must be filled (find_culprit); `run` and `read` must outlive the Case.
  Case(SnapshotDoc doc, Run run, Read read);

  const SnapshotDoc& doc() const { return *doc_; }
  const TraceGraph& graph() const { return graph_; }
  const Culprit& culprit() const { return doc_->culprit; }
  /// The culprit's op, or the first op that reads the bad input, weight, buffer or state; kNone if no op
  /// does.
  std::int32_t op_index() const { return op_; }
  /// That op; null if there is none.
  const OpRow* op() const { return row(op_); }
  const OpRow* row(std::int32_t op) const;

  /// Runs the step. Not cached.
  RunResult run(const RunOptions& options) const { return run_(options); }
  /// The whole step in `precision`; run once.
  const RunResult& whole(Precision precision) const;
  /// Sets the result of `whole` for the run as recorded, if it exists already.
  void set_recorded(RunResult run) { whole_.insert_or_assign(Precision::as_recorded, std::move(run)); }
  /// True if a run shows none of the recorded step's harm (blame/harm.h).
  bool healthy(const RunResult& run) const;
  /// The outcome of such a run: `failed` if an op could not be run, or if the bad values come from an op that
  /// could only run in its own format or not at all: its results are as recorded, whatever is changed before
  /// it.
  TrialResult result(const RunResult& run) const;
  /// Whether an op that can't be run again here (usually a collective) gave bad values: they are in every
  /// run.
  bool has_bad_as_recorded() const;
  /// The same step under other tables (of the same ops): another culprit. Shares the lab and earlier results.
  Case with(SnapshotDoc doc) const;

  /// The step with `edit` in every run, also in those that change something else, which comes after it.
  /// Shares the lab; has no blame and no twin.
  Case changed(const TraceEdit& edit, SnapshotDoc doc) const;

  /// The lab that runs the step; null for a Case with a `run` of its own.
  const Lab* lab() const { return lab_.get(); }
  void set_lab(std::shared_ptr<const Lab> lab) { lab_ = std::move(lab); }
  /// False once searches should end with what they have.
  bool has_time() const { return !lab_ || lab_->has_time(); }

  /// The step on the batch of the last healthy one; null for a Case that can't be run.
  TwinRun* twin() const { return twin_.get(); }
  void set_twin(std::shared_ptr<TwinRun> twin) { twin_ = std::move(twin); }

  /// What was found to be to blame, by experiment; empty for a Case without experiments.
  const Blame& blame() const { return blame_; }
  void set_blame(Blame blame) { blame_ = std::move(blame); }

  /// Results of the changes that were run so far, by their texts and places. Shared by copies of the Case.
  std::map<std::string, TrialResult>& trials() const { return *trials_; }

  /// Reads a stored tensor; nothing if the file doesn't hold it.
  std::optional<at::Tensor> read(const std::string& path) const { return read_(path); }
  /// Arguments and outputs of `op` in the run as recorded; read once. Empty if the op did not run. For an op
  /// on lists: those of the call in focus, also for an op on lists as long as the culprit's.
  const OpValues& values(std::int32_t op) const;
  /// The number of calls in an op on lists; one for every other op, none if it did not run.
  const std::vector<OpValues>& calls(std::int32_t op) const;
  /// Which of the culprit's calls `values` returns from now on (0 at first): causes are asked once for each
  /// that went wrong.
  void focus(std::size_t call) { focus_ = call; }
  std::size_t focus() const { return focus_; }

  /// Rows of doc.tensors that `op` reads or writes as arguments, in order, with the argument's position in
  /// `arguments`.
  struct TensorArgument {
    int position;
    std::int32_t tensor;
  };
  std::vector<TensorArgument> tensor_arguments(std::int32_t op) const;
  /// The last op before `op` that wrote an element of tensor row `tensor`; kNone if all came from outside.
  std::int32_t producer(std::int32_t tensor, std::int32_t before_op) const;
  /// Ops that read what `op` wrote, until it is overwritten.
  std::vector<std::int32_t> readers(std::int32_t op) const;
  /// Ops of the same phase that depend on `op` within `hops` steps, without `op`.
  std::set<std::int32_t> readers_within(std::int32_t op, int hops) const;
  /// For a backward op the forward op that it differentiates (by link, else by sequence number); kNone if
  /// unknown.
  std::int32_t forward_of(std::int32_t op) const;
  /// Module path of an op, for a backward op without one that of its forward op; "" if unknown.
  std::string module_of(std::int32_t op) const;
  /// True if there is such an op and its plain_name is one of these.
  bool is_one_of(std::int32_t op, std::initializer_list<std::string_view> names) const;
  /// "aten::mm in blocks.1.mlp", for sentences.
  std::string op_text(std::int32_t op) const;
  /// "aten::mm in blocks.1.mlp (op 12)".
  std::string op_with_number(std::int32_t op) const;
  /// The name of an outside storage, "storage 12" if it has none.
  std::string slot_text(std::int32_t slot) const;

 private:
  /// In `run` the op was not run, but got its recorded outputs; they are bad, and its inputs are not.
  bool bad_as_recorded(const RunResult& run, OpId op) const;

  std::shared_ptr<const SnapshotDoc> doc_;  ///< its address stays the same when the Case moves
  TraceGraph graph_;
  Run run_;
  Read read_;
  std::int32_t op_ = kNone;
  Blame blame_;
  std::shared_ptr<const Lab> lab_;
  std::shared_ptr<TwinRun> twin_;
  std::shared_ptr<std::map<std::string, TrialResult>> trials_ =
      std::make_shared<std::map<std::string, TrialResult>>();
  mutable std::map<Precision, RunResult> whole_;
  mutable std::shared_ptr<const Harm> harm_;
  mutable std::map<std::int32_t, std::vector<OpValues>> values_;
  std::size_t focus_ = 0;
};

/// The op's name without "aten::", a trailing "_" (in place) and a leading "_foreach_".
std::string plain_name(const OpRow& op);

}  // namespace nanquest
