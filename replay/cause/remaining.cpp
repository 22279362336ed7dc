#include "replay/cause/remaining.h"

#include <algorithm>
#include <utility>

#include "probe/trace/births.h"
#include "probe/trace/walk.h"
#include "replay/blame/intended.h"
#include "replay/blame/suspects.h"
#include "replay/cause/culprit.h"

namespace nanquest {
namespace {

void set_stats(SnapshotDoc& doc, TensorId row, const StatsRow& stats) {
  TensorRow& tensor = doc.tensors[row.index()];
  tensor.stats = static_cast<std::int32_t>(doc.stats.size());
  doc.stats.push_back(stats);
}

bool is_replaced(const Case& c, const Change& change, TensorId row) {
  return change.options.edit.slot_edit.count(c.graph().slot(row).row()) > 0;
}

/// The tables with the statistics of `run`, the step with `change`: of what ops wrote, and of what they read
/// of it as a whole.
SnapshotDoc with_statistics(const Case& c, const Change& change, const RunResult& run) {
  SnapshotDoc doc = c.doc();
  for (const OpId op : c.graph().ops()) {
    for (const TensorId row : c.graph().reads(op)) {
      const OpId maker = c.graph().producer(row, op);
      if (!maker && is_replaced(c, change, row)) set_stats(doc, row, {});
      if (!maker || maker.index() >= run.ops.size()) continue;
      const std::vector<StatsRow>& written = run.ops[maker.index()].written;
      const StatsRow* before = c.graph().stats(row);
      const bool all_good =
          std::all_of(written.begin(), written.end(), [](const StatsRow& s) { return s.non_finite() == 0; });
      if (written.size() == 1 && before && before->count == written.front().count)
        set_stats(doc, row, written.front());
      else if (all_good && !written.empty() && c.graph().bad(row))
        set_stats(doc, row, {});
    }
    std::size_t entry = 0;
    for (const TensorId row : c.graph().written(op)) {
      const std::vector<StatsRow>& written = run.ops[op.index()].written;
      if (row && entry < written.size()) set_stats(doc, row, written[entry]);
      ++entry;
    }
  }
  return doc;
}

bool belongs_to_culprit(const Case& c, OpId op) {
  return op.row() == c.op_index() || c.graph().forward_of(op).row() == c.op_index();
}

/// Where data were replaced: the first other value from outside that is bad and reaches harm.
std::optional<Suspect> other_data(const TraceGraph& graph, const Walk& walk) {
  for (const Suspect& suspect : find_suspects(graph, walk))
    if (suspect.row && !is_said_to_be_meant(graph, suspect)) return suspect;
  return std::nullopt;
}

}  // namespace

std::optional<Case> remaining(const Case& c, const Change& change) {
  if (!c.op()) return std::nullopt;
  const RunResult run = c.run(change.options);
  if (run.failed > c.whole(Precision::as_recorded).failed || c.healthy(run)) return std::nullopt;
  SnapshotDoc doc = with_statistics(c, change, run);
  const TraceGraph graph(doc);
  const Walk walk(graph);
  const auto named_by = [&](const Suspect& suspect) {
    SnapshotDoc named = doc;
    blame_suspect(named, suspect);
    return c.changed(change.options.edit, std::move(named));
  };
  if (change.kind == ChangeKind::data)
    if (const auto other = other_data(graph, walk)) return named_by(*other);
  for (const Suspect& maker : makers_in(graph, run)) {
    if (!walk.reached(maker.op) || are_meant_by_constant(doc, maker.op)) continue;
    if (belongs_to_culprit(c, maker.op)) return std::nullopt;
    return named_by(maker);
  }
  return std::nullopt;
}

}  // namespace nanquest
