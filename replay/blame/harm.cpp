#include "replay/blame/harm.h"

#include <algorithm>

namespace nanquest {
namespace {

/// Lives on after the step: a bad value in it is bad in the next one too.
bool lives_on(SlotOrigin origin) {
  return origin == SlotOrigin::parameter || origin == SlotOrigin::optimizer_state ||
         origin == SlotOrigin::buffer;
}

}  // namespace

Harm::Harm(const TraceGraph& graph, const RunResult& recorded) : recorded_(recorded) {
  any_ = !recorded.loss_finite || !recorded.gradients_finite;
  for (const SlotId slot : ids_of<Slot>(graph.doc())) {
    if (!lives_on(get(graph.doc(), slot).origin)) continue;
    const std::vector<TraceGraph::Write>& all = graph.writes(slot);
    for (std::size_t i = 0; i < all.size(); ++i) {
      // A write that a later one overwrites whole has done no harm.
      const bool overwritten = std::any_of(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end(),
                                           [&](const TraceGraph::Write& later) {
                                             return covers(graph.tensor(later.row), graph.tensor(all[i].row));
                                           });
      if (overwritten || (graph.op(all[i].op).flags & kOpUninitialised)) continue;
      LastWrite write{all[i].op, static_cast<std::size_t>(all[i].entry)};
      write.was_bad = bad(recorded, write);
      any_ = any_ || write.was_bad;
      writes_.push_back(write);
    }
  }
}

bool Harm::bad(const RunResult& run, const LastWrite& write) {
  if (write.op.index() >= run.ops.size()) return false;
  const std::vector<StatsRow>& rows = run.ops[write.op.index()].written;
  return write.entry < rows.size() && rows[write.entry].non_finite() > 0;
}

bool Harm::undone_by(const RunResult& run) const {
  if (run.decided_at != kNone || run.failed > recorded_.failed) return false;
  if (!run.loss_finite || !run.gradients_finite) return false;
  return std::none_of(writes_.begin(), writes_.end(),
                      [&](const LastWrite& write) { return bad(run, write); });
}

}  // namespace nanquest
