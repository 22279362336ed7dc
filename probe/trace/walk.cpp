#include "probe/trace/walk.h"

#include <algorithm>

#include "probe/trace/births.h"
#include "probe/trace/collectives.h"

namespace nanquest {
namespace {

/// The collective whose result `reader` copies out of memory that host code filled: a backend that receives
/// into a buffer of its own (gloo's gathers) hands it over with ordinary copies when somebody waits. None if
/// it is none.
OpId collective_behind(const TraceGraph& graph, OpId host_write, OpId reader) {
  OpId found;
  for (const TensorId copied : graph.written(reader)) {
    if (!copied) continue;
    for (const TraceGraph::Write& write : graph.writes(graph.slot(copied)))
      if (write.op < host_write && write.op > found && is_collective(graph.op(write.op).name))
        found = write.op;
  }
  return found;
}

bool is_trained(SlotOrigin origin) {
  return origin == SlotOrigin::parameter || origin == SlotOrigin::optimizer_state;
}

}  // namespace

Walk::Walk(const TraceGraph& graph)
    : graph_(graph),
      reached_(graph.doc().ops.size(), false),
      next_(graph.doc().ops.size()),
      seen_(graph.doc().slots.size()) {
  const SnapshotDoc& doc = graph.doc();
  const auto sink = [&](std::int32_t row) {
    if (graph_.bad(TensorId{row})) (void)visit_writers(TensorId{row}, graph_.end(), OpId{});
  };
  // The loss first: a way that leads there says more than a shorter one to some gradient.
  sink(doc.loss);
  drain();
  for (const std::int32_t row : doc.gradients) sink(row);
  for (const OpId op : graph_.ops()) {
    if (graph_.op(op).phase != Phase::optimizer) continue;
    for (const TensorId row : graph_.written(op))
      if (graph_.bad(row) && is_trained(get(doc, graph_.slot(row)).origin)) visit(op, OpId{});
  }
  drain();
}

void Walk::visit(OpId op, OpId towards) {
  if (reached_[op]) return;
  reached_[op] = true;
  next_[op] = towards;
  queue_.push_back(op);
}

bool Walk::visit_writers(TensorId row, OpId before, OpId towards) {
  const SlotId slot = graph_.slot(row);
  if (!slot) return false;
  Seen& seen = seen_[slot];
  const bool known = seen.row && seen.since < before && before <= seen.before &&
                     covers(graph_.tensor(seen.row), graph_.tensor(row));
  bool found = false;
  OpId last;
  const TraceGraph::Search search =
      graph_.each_write_behind(row, before, [&](const TraceGraph::Write& write) {
        last = write.op;
        if (!graph_.bad(write.row)) return false;
        found = true;
        OpId writer = write.op;
        if (towards && (graph_.op(writer).flags & kOpHostWrite))
          if (const OpId collective = collective_behind(graph_, writer, towards)) writer = collective;
        visit(writer, towards);
        return known;  // the others were visited for a row that shows all that this one does
      });
  // What was passed over now may be seen by who reads earlier.
  if (!known && !search.passed_over) seen = {row, search.ended ? last : OpId{}, before};
  return found;
}

void Walk::look_into(OpId op) {
  bool inherited = false;
  for (const TensorId row : graph_.reads(op)) {
    if (!graph_.bad(row)) continue;
    inherited = true;
    if (!visit_writers(row, op, op)) roots_.push_back({op, row});
  }
  if (!inherited) roots_.push_back({op, TensorId{}});
}

void Walk::drain() {
  while (drained_ < queue_.size()) look_into(queue_[drained_++]);
}

std::vector<OpId> Walk::path_to_harm(OpId from) const {
  std::vector<OpId> path;
  for (OpId op = from; op && path.size() <= queue_.size(); op = next_[op]) path.push_back(op);
  return path;
}

bool is_intended(const TraceGraph& graph, const Root& root) {
  if (root.row) {
    const StatsRow* s = graph.stats(root.row);
    const SlotOrigin origin = get(graph.doc(), graph.slot(root.row)).origin;
    return s && s->nan == 0 && s->pos_inf == 0 &&
           (origin == SlotOrigin::external || origin == SlotOrigin::input || origin == SlotOrigin::buffer);
  }
  const std::uint32_t flags = graph.op(root.op).flags;
  if (flags & kOpHostWrite) return graph.written_counts(root.op).nan == 0;
  return !(flags & kOpBirthFiniteAbove) && bad_constants(graph.doc(), root.op).infinite;
}

OpId first_harmful(const TraceGraph& graph, const std::vector<OpId>& path, bool source_is_op) {
  for (std::size_t i = source_is_op ? 1 : 0; i < path.size(); ++i) {
    const BadCounts in = graph.read_counts(path[i]), out = graph.written_counts(path[i]);
    if (in.nan == 0 && out.nan > 0) return path[i];
    if (in.pos_inf == 0 && out.pos_inf > 0) return path[i];
  }
  return path.back();
}

}  // namespace nanquest
