#include <algorithm>

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

void count(bool equal, OpId writer, VerifyResult& result) {
  ++result.outputs_compared;
  if (equal) return;
  ++result.mismatched;
  if (writer && (result.first_mismatch == kNone || writer < OpId{result.first_mismatch}))
    result.first_mismatch = writer.row();
}

void compare_op(const TraceGraph& graph, OpId op, const OpOutcome& outcome, VerifyResult& result) {
  if (graph.op(op).flags & (kOpUninitialised | kOpFailed)) return;  // nobody wrote there, or nothing came out
  if (outcome.substituted) return;                                  // what was recorded, by definition
  const auto rows = graph.written(op);
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (const StatsRow* recorded = recorded_hash(graph, rows[i]))
      count(i < outcome.written.size() && outcome.written[i].has_hash &&
                outcome.written[i].hash == recorded->hash,
            op, result);
}

/// What was alive when the step was recorded, against what the run has in the same place at its end.
void compare_survivors(const TraceGraph& graph, trace::Run& run, VerifyResult& result) {
  std::vector<std::int32_t> rows = graph.doc().gradients;
  rows.insert(rows.begin(), graph.doc().loss);
  for (const std::int32_t row : rows) {
    const StatsRow* recorded = recorded_hash(graph, TensorId{row});
    if (!recorded) continue;
    StatsRow now;
    try {
      now = trace::measure(run.value(TensorId{row}), false, true, graph.doc().hash_kind);
    } catch (const std::exception&) {  // what can't be seen isn't equal
    }
    count(now.has_hash && now.hash == recorded->hash, graph.producer(TensorId{row}, graph.end()), result);
  }
}

}  // namespace

VerifyResult verify(const Replayer& replayer) {
  const Replayer::Impl& impl = replayer.impl();
  const TraceGraph& graph = impl.plan().graph;
  const SnapshotDoc& doc = graph.doc();
  VerifyResult result;
  const bool survivors = doc.basis == "survivors" || lacks_statistics(doc);
  // Memory that the step wrote last and that was alive at its end has its hash where it was written.
  const bool hashes = !survivors || has_hashes(graph);
  result.basis = survivors ? "survivors" : doc.basis;
  result.differences = trace::environment_differences(doc);
  RunOptions options;
  options.scan = false;
  options.hash = hashes;
  const RunResult run = impl.run(options, [&](trace::Run& ended) {
    if (survivors) compare_survivors(graph, ended, result);
  });
  for (const OpId op : graph.ops()) {
    const std::uint32_t flags = graph.op(op).flags;
    const OpOutcome& outcome = run.ops[op.index()];
    if ((flags & kOpOpaque) || outcome.substituted) ++result.opaque_ops;
    if (hashes && !(survivors && (flags & kOpHostWrite))) compare_op(graph, op, outcome, result);
  }
  result.failed_ops = run.failed;
  result.bit_exact = result.outputs_compared > 0 && result.mismatched == 0 && run.failed == 0;
  result.seconds = run.seconds;
  return result;
}

}  // namespace nanquest
