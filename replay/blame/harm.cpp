#include "replay/blame/harm.h"

#include <algorithm>

#include "probe/trace/hidden.h"
#include "probe/trace/origins.h"

namespace nanquest {
namespace {

/// Kept after the step: a bad value in it is bad in the next step too.
bool lives_on(const Slot& slot) {
  const SlotOrigin origin = slot.origin;
  return is_made_state(slot) || origin == SlotOrigin::parameter || origin == SlotOrigin::optimizer_state ||
         origin == SlotOrigin::buffer;
}

/// Non-finite elements that the storage of `row` held when the step began, as far as the step read them.
std::uint64_t bad_before(const TraceGraph& graph, SlotId slot, TensorId written) {
  std::uint64_t most = 0;
  for (const TraceGraph::Read& read : graph.reads(slot))
    if (const StatsRow* s = graph.stats(read.row);
        s && graph.tensor(read.row).sizes == graph.tensor(written).sizes &&
        !graph.producer(read.row, read.op))
      most = std::max<std::uint64_t>(most, s->non_finite());
  return most;
}

}  // namespace

Harm::Harm(const TraceGraph& graph, const RunResult& recorded) : failed_(recorded.failed) {
  any_ = !recorded.loss_finite || !recorded.gradients_finite;
  for (const SlotId slot : ids_of<Slot>(graph.doc())) {
    if (!lives_on(get(graph.doc(), slot))) continue;
    const std::vector<TraceGraph::Write>& all = graph.writes(slot);
    for (std::size_t i = 0; i < all.size(); ++i) {
      // A write that a later one overwrites completely has done no harm.
      const bool overwritten = std::any_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(),
                                           [&](const TraceGraph::Write& later) {
                                             return covers(graph.tensor(later.row), graph.tensor(all[i].row));
                                           });
      if (overwritten || (graph.op(all[i].op).flags & kOpUninitialised)) continue;
      const LastWrite write{all[i].op, static_cast<std::size_t>(all[i].entry),
                            bad_before(graph, slot, all[i].row)};
      any_ = any_ || bad(recorded, write);
      writes_.push_back(write);
    }
  }
  if (any_) return;
  for (const OpId op : graph.ops())
    if (hides_overflow(graph, op)) hidden_.push_back(op);
}

bool Harm::bad(const RunResult& run, const LastWrite& write) {
  if (write.op.index() >= run.ops.size()) return false;
  const std::vector<StatsRow>& rows = run.ops[write.op.index()].written;
  return write.entry < rows.size() && rows[write.entry].non_finite() > write.before;
}

bool Harm::undone_by(const RunResult& run) const {
  if (run.decided_at != kNone || run.failed > failed_) return false;
  if (!run.loss_finite || !run.gradients_finite) return false;
  const auto overflows = [&](OpId op) {
    if (op.index() >= run.ops.size()) return false;
    const std::vector<StatsRow>& rows = run.ops[op.index()].written;
    return std::any_of(rows.begin(), rows.end(), [](const StatsRow& s) { return s.non_finite() > 0; });
  };
  return std::none_of(writes_.begin(), writes_.end(),
                      [&](const LastWrite& write) { return bad(run, write); }) &&
         std::none_of(hidden_.begin(), hidden_.end(), overflows);
}

}  // namespace nanquest
