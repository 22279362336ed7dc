#include "replay/trace/detect.h"

#include <algorithm>

#include "probe/trace/graph.h"

namespace nanquest {
namespace {

/// Where the bad values of a run came from.
class Provenance {
 public:
  Provenance(const TraceGraph& graph, const RunResult& run) : graph_(graph), run_(run) {}

  /// The op that passed bad values to `op`; none if there is none.
  OpId source(OpId op) const {
    OpId found;
    for (const TensorId row : graph_.reads(op))
      (void)graph_.each_write_behind(row, op, [&](const TraceGraph::Write& write) {
        if (!found && wrote_bad(write)) found = write.op;
        return static_cast<bool>(found);
      });
    return found;
  }
  /// Name of the first outside value that `op` reads and that was bad from the start, "" if there is none.
  std::string outside(OpId op) const {
    for (const TensorId row : graph_.reads(op)) {
      const SlotId id = graph_.slot(row);
      const Slot& slot = get(graph_.doc(), id);
      if (slot.origin != SlotOrigin::produced && graph_.bad(row) && !graph_.producer(row, op))
        return slot.name.empty() ? "slot " + std::to_string(id.row()) : slot.name;
    }
    return "";
  }
  bool is_birth(OpId op) const {
    return std::binary_search(run_.births.begin(), run_.births.end(), op.row());
  }

 private:
  bool wrote_bad(const TraceGraph::Write& write) const {
    const auto& written = run_.ops[write.op.index()].written;
    const auto entry = static_cast<std::size_t>(write.entry);
    return entry < written.size() && written[entry].non_finite() > 0 &&
           !(graph_.op(write.op).flags & kOpUninitialised);
  }

  const TraceGraph& graph_;
  const RunResult& run_;
};

Anomaly explain(const TraceGraph& graph, const RunResult& run, OpId id) {
  const OpRow& op = graph.op(id);
  const Provenance from(graph, run);
  Anomaly a;
  a.op = id.row();
  a.name = SnapshotDoc::qualified_name(op);
  a.phase = op.phase;
  a.module = graph.module_of(id);
  a.node = op.node;
  a.forward_op = op.forward_op;
  if (const OpRow* forward = find_row(graph.doc(), OpId{op.forward_op}))
    a.forward_name = SnapshotDoc::qualified_name(*forward);
  BadCounts bad;
  for (const StatsRow& stats : run.ops[id.index()].written) {
    bad += stats;
    if (a.first < 0 && stats.first_bad >= 0) a.first = stats.first_bad;
  }
  a.count = bad.total();
  a.kind = bad.nan == 0 ? "inf" : bad.nan == bad.total() ? "nan" : "mixed";
  a.inputs_finite = from.is_birth(id);
  if (a.inputs_finite) return a;
  OpId origin = id;
  for (OpId at = from.source(id); at; at = from.source(at)) {
    a.came_from.push_back(at.row());
    origin = at;
    if (from.is_birth(at)) break;
  }
  std::reverse(a.came_from.begin(), a.came_from.end());
  a.outside = from.outside(origin);
  return a;
}

}  // namespace

Detection detect(const SnapshotDoc& doc, const RunResult& run) {
  Detection result;
  const TraceGraph graph(doc);
  for (const OpOutcome& op : run.ops) {
    if (!op.written.empty()) ++result.ops_checked;
    result.outputs_checked += static_cast<std::int64_t>(op.written.size());
  }
  if (run.ops.size() != doc.ops.size()) return result;  // a run of another doc explains nothing here
  const auto known = [&](std::int32_t op) { return find_row(doc, OpId{op}) != nullptr; };
  if (known(run.first_inf)) result.first_inf = explain(graph, run, OpId{run.first_inf});
  if (known(run.first_nan)) result.first_nan = explain(graph, run, OpId{run.first_nan});
  for (const std::int32_t op : run.births)
    if (known(op)) result.births.push_back(explain(graph, run, OpId{op}));
  return result;
}

std::string describe(const SnapshotDoc& doc, const Anomaly& a) {
  if (a.op == kNone) return "nothing non-finite";
  std::string text = a.name + " (op " + std::to_string(a.op) + ", ";
  text += phase_name(a.phase);
  if (!a.node.empty()) text += ", " + a.node;
  if (!a.forward_name.empty()) text += " of " + a.forward_name;
  text += ")";
  if (!a.module.empty()) text += " in " + a.module;
  const std::string what = a.kind == "inf" ? "Inf" : a.kind == "nan" ? "NaN" : "NaN and Inf";
  text += " wrote " + std::to_string(a.count) + " " + what + ", first at element " + std::to_string(a.first);
  if (a.inputs_finite) return text + ", out of finite inputs";
  if (!a.outside.empty()) return text + "; bad values came in with " + a.outside;
  if (a.came_from.empty()) return text;
  const OpRow& origin = get(doc, OpId{a.came_from.front()});
  return text + "; the bad values came from " + SnapshotDoc::qualified_name(origin) + " (op " +
         std::to_string(a.came_from.front()) + ")";
}

}  // namespace nanquest
