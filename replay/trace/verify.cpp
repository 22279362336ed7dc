#include <algorithm>

#include "replay/trace/bounds.h"
#include "replay/trace/environment.h"
#include "replay/trace/replayer_state.h"
#include "replay/trace/statistics.h"

namespace nanquest {
namespace {

/// Recorded statistics of a row; null if its hash was not recorded.
const StatsRow* recorded_hash(const TraceGraph& graph, TensorId row) {
  const StatsRow* found = graph.stats(row);
  return found && found->has_hash ? found : nullptr;
}

bool has_hashes(const TraceGraph& graph) {
  for (const OpId op : graph.ops())
    for (const TensorId row : graph.written(op))
      if (!(graph.op(op).flags & kOpHostWrite) && recorded_hash(graph, row)) return true;
  return false;
}

/// Compares recorded values with those of the run, and counts.
class Comparison {
 public:
  Comparison(const TraceGraph& graph, VerifyResult& result)
      : graph_(graph), result_(result), bound_(graph.doc().environment) {}

  /// What the op wrote. In the order of the step.
  void op(OpId op, const OpOutcome& outcome) {
    for (const TraceGraph::Argument& argument : graph_.arguments(op)) use(argument.row);
    const auto rows = graph_.written(op);
    for (const TensorId row : rows) use(row);
    if (graph_.op(op).flags & (kOpUninitialised | kOpFailed)) return;  // not written, or no result
    if (outcome.substituted) return;                                   // the recorded values, by definition
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (const StatsRow* recorded = recorded_hash(graph_, rows[i]))
        value(rows[i], *recorded, i < outcome.written.size() ? outcome.written[i] : StatsRow{}, op);
  }

  /// Compares what was alive when the step was recorded with the values in the same place at the end of the
  /// run.
  void survivors(trace::Run& run) {
    std::vector<std::int32_t> rows = graph_.doc().gradients;
    rows.insert(rows.begin(), graph_.doc().loss);
    if (result_.elsewhere)
      for (const OpId op : graph_.ops())
        for (const TensorId row : graph_.written(op)) use(row);
    for (const std::int32_t row : rows) {
      const StatsRow* recorded = recorded_hash(graph_, TensorId{row});
      if (!recorded) continue;
      StatsRow now;
      try {
        now = trace::measure(run.value(TensorId{row}), result_.elsewhere, true, graph_.doc().hash_kind);
      } catch (const std::exception&) {  // what can't be read isn't equal
      }
      value(TensorId{row}, *recorded, now, graph_.producer(TensorId{row}, graph_.end()));
    }
    bound_ = trace::StepBound(graph_.doc().environment);
  }

 private:
  void use(TensorId row) {
    if (row) bound_.use(graph_.tensor(row).dtype);
  }

  void value(TensorId row, const StatsRow& recorded, const StatsRow& now, OpId writer) {
    ++result_.outputs_compared;
    if (now.has_hash && now.hash == recorded.hash) return;
    ++result_.mismatched;
    const bool within = result_.elsewhere && now.has_hash && near(row, recorded, now);
    result_.outside += result_.elsewhere && !within;
    note(writer, !within && result_.elsewhere);
  }

  bool near(TensorId row, const StatsRow& recorded, const StatsRow& now) {
    const double apart = trace::distance(graph_.tensor(row).dtype, recorded, now);
    result_.bound = std::max(result_.bound, bound_.now());
    if (apart > bound_.now()) return false;
    result_.distance = std::max(result_.distance, apart);
    return true;
  }

  /// The first op of its kind; one outside its bounds comes before all others.
  void note(OpId writer, bool outside) {
    if (!writer) return;
    const bool better = outside && !first_is_outside_;
    const bool worse = !outside && first_is_outside_;
    if (worse || (!better && result_.first_mismatch != kNone && OpId{result_.first_mismatch} <= writer))
      return;
    result_.first_mismatch = writer.row();
    first_is_outside_ = outside;
  }

  const TraceGraph& graph_;
  VerifyResult& result_;
  trace::StepBound bound_;
  bool first_is_outside_ = false;
};

/// "cuda" of "cuda:1".
std::string kind(const std::string& device) {
  return device.substr(0, device.find(':'));
}

}  // namespace

std::string recorded_device(const SnapshotDoc& doc) {
  const auto found =
      std::find_if(doc.slots.begin(), doc.slots.end(), [](const Slot& s) { return s.device != "cpu"; });
  return found == doc.slots.end() ? "cpu" : found->device;
}

VerifyResult verify(const Replayer& replayer, c10::Device device) {
  const Replayer::Impl& impl = replayer.impl();
  const TraceGraph& graph = impl.plan().graph;
  const SnapshotDoc& doc = graph.doc();
  VerifyResult result;
  const bool survivors = doc.basis == "survivors" || lacks_statistics(doc);
  // Memory that the step wrote last and that was alive at its end has its hash where it was written.
  const bool hashes = !survivors || has_hashes(graph);
  result.basis = survivors ? "survivors" : doc.basis;
  result.differences = trace::environment_differences(doc);
  result.recorded_on = recorded_device(doc);
  result.replayed_on = result.recorded_on == "cpu" ? "cpu" : device.str();
  // A device's kernels may add in another order each time (atomics): its values are compared within bounds
  // too. So are those of a CPU with other kernels, if they are not the same bits.
  const bool same_kind = kind(result.recorded_on) == kind(result.replayed_on);
  result.elsewhere = result.recorded_on != "cpu" || trace::has_other_kernels(doc);
  RunOptions options;
  options.device = device;
  options.scan = result.elsewhere || device.is_cpu();
  options.hash = hashes;
  Comparison comparison(graph, result);
  RunResult run = impl.run(options, [&](trace::Run& ended) {
    if (survivors) comparison.survivors(ended);
  });
  for (const OpId op : graph.ops()) {
    const std::uint32_t flags = graph.op(op).flags;
    const OpOutcome& outcome = run.ops[op.index()];
    if ((flags & kOpOpaque) || outcome.substituted) ++result.opaque_ops;
    if (hashes && !(survivors && (flags & kOpHostWrite))) comparison.op(op, outcome);
  }
  result.failed_ops = run.failed;
  result.bit_exact = result.outputs_compared > 0 && result.mismatched == 0 && run.failed == 0;
  if (same_kind && result.bit_exact) result.elsewhere = false;
  result.seconds = run.seconds;
  if (device.is_cpu()) result.run = std::make_shared<const RunResult>(std::move(run));
  return result;
}

}  // namespace nanquest
