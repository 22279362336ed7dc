#include "probe/trace/walk.h"

#include <algorithm>

#include "probe/trace/births.h"
#include "probe/trace/collectives.h"
#include "probe/trace/flow.h"
#include "probe/trace/origins.h"

namespace nanquest {
namespace {

/// The collective whose result `reader` copies from memory that host code filled: a backend that receives
/// into a buffer of its own (gloo's gathers) returns it with ordinary copies in the wait. None if there is
/// none.
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

/// Memory that existed before the step and has none of the roles above: its contents at the end are there in
/// the next step. Not a batch; not old gradients, which are cleared or overwritten; not memory without a name
/// that was written before it was read, which is working memory.
bool lives_on(const TraceGraph& graph, SlotId slot, SlotOrigin origin) {
  if (origin == SlotOrigin::buffer || origin == SlotOrigin::loss_scale) return true;
  if (is_made_state(get(graph.doc(), slot))) return true;
  return origin == SlotOrigin::external && !graph.writes(slot).empty() && old_value_used(graph, slot);
}

ValueKinds kinds_in(const TraceGraph& graph, TensorId row) {
  const StatsRow* s = graph.stats(row);
  return s ? value_kinds({s->nan, s->pos_inf, s->neg_inf}) : ValueKinds{0};
}

}  // namespace

ValueKinds value_kinds(const BadCounts& c) {
  return static_cast<ValueKinds>((c.nan ? kKindNan : 0) | (c.pos_inf ? kKindPosInf : 0) |
                                 (c.neg_inf ? kKindNegInf : 0));
}

BadCounts of_kinds(const BadCounts& c, ValueKinds kinds) {
  return {kinds & kKindNan ? c.nan : 0, kinds & kKindPosInf ? c.pos_inf : 0,
          kinds & kKindNegInf ? c.neg_inf : 0};
}

Walk::Walk(const TraceGraph& graph)
    : graph_(graph),
      reached_(graph.doc().ops.size(), 0),
      next_(graph.doc().ops.size()),
      left_(graph.doc().ops.size(), false),
      seen_(graph.doc().slots.size()) {
  const SnapshotDoc& doc = graph.doc();
  PerRow<Slot, SlotOrigin> origins(doc.slots.size());
  for (const SlotId slot : ids_of<Slot>(doc)) origins[slot] = origin_of(graph, slot);
  const auto sink = [&](std::int32_t row) {
    if (const ValueKinds kinds = kinds_in(graph_, TensorId{row}))
      (void)visit_writers(TensorId{row}, graph_.end(), OpId{}, kinds);
  };
  // The loss first: a path to the loss says more than a shorter one to some gradient.
  sink(doc.loss);
  drain();
  for (const std::int32_t row : doc.gradients) sink(row);
  for (const OpId op : graph_.ops()) {
    if (graph_.op(op).phase != Phase::optimizer) continue;
    for (const TensorId row : graph_.written(op))
      if (const ValueKinds kinds = kinds_in(graph_, row); kinds && is_trained(origins[graph_.slot(row)]))
        visit(op, OpId{}, kinds);
  }
  drain();
  for (const SlotId slot : ids_of<Slot>(doc))
    if (lives_on(graph_, slot, origins[slot])) visit_what_was_left(slot);
  drain();
}

void Walk::visit_what_was_left(SlotId slot) {
  // A value that was bad when the step began was not made bad by this step.
  ValueKinds before = 0;
  for (const TraceGraph::Read& read : graph_.reads(slot))
    if (const ValueKinds kinds = kinds_in(graph_, read.row); kinds && !graph_.producer(read.row, read.op))
      before |= kinds;
  const std::vector<TraceGraph::Write>& writes = graph_.writes(slot);
  for (std::size_t i = writes.size(); i-- > 0;) {
    const ValueKinds kinds = kinds_in(graph_, writes[i].row) & ~before;
    if (!kinds || (graph_.op(writes[i].op).flags & kOpHostWrite)) continue;
    // A later write to some of the same elements may have repaired them.
    const bool stays =
        std::none_of(writes.begin() + static_cast<std::ptrdiff_t>(i) + 1, writes.end(),
                     [&](const TraceGraph::Write& later) {
                       return may_overlap(graph_.tensor(later.row), graph_.tensor(writes[i].row));
                     });
    if (!stays) continue;
    if (!reached_[writes[i].op]) left_[writes[i].op] = true;
    visit(writes[i].op, OpId{}, kinds);
  }
}

void Walk::visit(OpId op, OpId towards, ValueKinds kinds) {
  const auto fresh = static_cast<ValueKinds>(kinds & ~reached_[op]);
  if (!fresh) return;
  if (!reached_[op]) next_[op] = towards;
  reached_[op] |= fresh;
  queue_.push_back({op, fresh});
}

void Walk::add_root(const Root& root) {
  for (Root& known : roots_)
    if (known.op == root.op && known.row == root.row) {
      known.kinds |= root.kinds;
      return;
    }
  roots_.push_back(root);
}

bool Walk::visit_writers(TensorId row, OpId before, OpId towards, ValueKinds kinds) {
  const SlotId slot = graph_.slot(row);
  if (!slot) return false;
  Seen& seen = seen_[slot];
  const bool known = seen.row && seen.since < before && before <= seen.before && (kinds & ~seen.kinds) == 0 &&
                     covers(graph_.tensor(seen.row), graph_.tensor(row));
  bool found = false, other = false;
  OpId last;
  const TraceGraph::Search search =
      graph_.each_write_behind(row, before, [&](const TraceGraph::Write& write) {
        last = write.op;
        const auto wrote = static_cast<ValueKinds>(kinds_in(graph_, write.row) & kinds);
        other = other || graph_.bad(write.row);
        if (!wrote) return false;
        found = true;
        visit_writer(write.op, row, towards, wrote);
        return known;  // the others were visited for a row that shows everything that this one does
      });
  // A write that was skipped now may be visible to earlier reads.
  if (!known && !search.passed_over) seen = {row, search.ended ? last : OpId{}, before, kinds};
  // Everything that the row shows was written, but seen differently (a negated view): any bad write counts.
  if (!found && other && search.ended && kinds != kEveryKind)
    return visit_writers(row, before, towards, kEveryKind);
  return found;
}

void Walk::visit_writer(OpId writer, TensorId row, OpId towards, ValueKinds kinds) {
  if (!towards || !(graph_.op(writer).flags & kOpHostWrite)) return visit(writer, towards, kinds);
  // Bytes from the host were not made by an op: the op that reads them got a bad value from outside.
  if (const OpId collective = collective_behind(graph_, writer, towards))
    visit(collective, towards, kinds);
  else
    add_root({towards, row, kinds});
}

/// Continues with the inputs of the op that have any of the kinds `in`; kinds `from` of the writes behind
/// them may have caused these.
bool Walk::follow(OpId op, ValueKinds in, ValueKinds from) {
  bool found = false;
  for (const TensorId row : graph_.reads(op)) {
    const ValueKinds there = kinds_in(graph_, row);
    if (!(there & in) || only_updates(graph_, op, row)) continue;
    found = true;
    if (!visit_writers(row, op, op, from)) add_root({op, row, static_cast<ValueKinds>(there & from)});
  }
  return found;
}

void Walk::look_into(const Visit& visited) {
  const OpId op = visited.op;
  bool inherited = false;
  if (!(graph_.op(op).flags & kOpHostWrite)) {
    ValueKinds there = 0;
    for (const TensorId row : graph_.reads(op))
      if (const ValueKinds kinds = kinds_in(graph_, row); kinds && !only_updates(graph_, op, row))
        there |= kinds;
    for (const ValueKinds kind : {kKindNan, kKindPosInf, kKindNegInf}) {
      if (!there || !(visited.kinds & kind)) continue;
      if (!(there & kind))
        inherited = (kind != kKindNan && follow(op, kKindInf, kKindInf)) ||
                    follow(op, kEveryKind, kEveryKind) || inherited;
      else  // beside a NaN in the same tensor, a positive infinity is possible too
        inherited = follow(op, kind, kind == kKindNan ? kKindNan | kKindPosInf : kind) || inherited;
    }
  }
  if (!inherited) add_root({op, TensorId{}, visited.kinds});
}

void Walk::drain() {
  while (drained_ < queue_.size()) {
    const Visit visit = queue_[drained_++];
    look_into(visit);
  }
}

std::vector<OpId> Walk::path_to_harm(OpId from) const {
  std::vector<OpId> path;
  for (OpId op = from; op && path.size() <= reached_.size(); op = next_[op]) path.push_back(op);
  return path;
}

bool is_host_written(const TraceGraph& graph, const Root& root) {
  const OpId writer = root.row ? graph.producer(root.row, root.op) : root.op;
  return writer && (graph.op(writer).flags & kOpHostWrite);
}

bool is_intended(const TraceGraph& graph, const Root& root) {
  const bool by_host = is_host_written(graph, root);
  if (root.kinds & kKindNan) return false;
  if (!root.row && !by_host) return are_meant_by_constant(graph.doc(), root.op);
  const TensorId row = root.row ? root.row : graph.written(root.op).front();
  const SlotOrigin origin = get(graph.doc(), graph.slot(row)).origin;
  if (!(root.kinds & kKindPosInf))
    return by_host || origin == SlotOrigin::external || origin == SlotOrigin::input ||
           origin == SlotOrigin::buffer;
  // Only infinity, written into new memory, as torch.tensor does with a number.
  const StatsRow* s = graph.stats(row);
  return by_host && origin == SlotOrigin::produced && s && s->count == s->pos_inf + s->neg_inf;
}

OpId first_harmful(const TraceGraph& graph, const std::vector<OpId>& path, bool source_is_op) {
  for (std::size_t i = source_is_op ? 1 : 0; i < path.size(); ++i) {
    const BadCounts in = graph.read_counts(path[i]), out = graph.written_counts(path[i]);
    if (in.nan == 0 && out.nan > 0) return path[i];
    if (in.pos_inf == 0 && out.pos_inf > 0) return path[i];
  }
  return {};
}

}  // namespace nanquest
