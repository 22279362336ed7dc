#include "probe/trace/phases.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "probe/trace/collectives.h"
#include "probe/trace/graph.h"
#include "probe/trace/op_facts.h"
#include "probe/trace/origins.h"

namespace nanquest {
namespace {

class Phases {
 public:
  explicit Phases(const SnapshotDoc& doc)
      : graph_(doc),
        weight_(doc.slots.size(), false),
        made_(doc.ops.size()),
        for_forward_(doc.ops.size(), false) {
    for (const OpId op : graph_.ops()) phase_.push_back(graph_.op(op).phase);
    for (const SlotId slot : ids_of<Slot>(doc))
      weight_[slot] = origin_of(graph_, slot) == SlotOrigin::parameter;
  }

  std::vector<Phase> settle() {
    if (!find_gradients()) return std::move(phase_);
    find_what_forward_uses();
    for (const OpId op : graph_.ops()) visit(op);
    for (const OpId op : graph_.ops()) find_averages(op);
    for (std::int32_t op = graph_.end().row() - 1; op > first_; --op) find_feeder(OpId{op});
    for (const OpId op : graph_.ops()) find_view(op);
    return std::move(phase_);
  }

 private:
  /// What an op's results were computed from.
  struct Made {
    bool gradient = false;  ///< gradients
    bool weight = false;    ///< element by element from a weight that this step has updated
    bool state = false;     ///< element by element from memory that persists
  };

  Phase& phase(OpId op) { return phase_[op.index()]; }
  bool recorded(OpId op, Phase phase) const { return graph_.op(op).phase == phase; }
  bool again(OpId op) const { return (graph_.op(op).flags & kOpRecompute) != 0; }
  /// It made a node of the autograd graph: a backward pass may go through it.
  bool differentiable(OpId op) const { return !recorded(op, Phase::backward) && graph_.op(op).sequence >= 0; }
  bool may_flip(OpId op) const {
    return op.row() > first_ && phase_[op.index()] == Phase::forward && !for_forward_[op];
  }
  const Slot* slot_of(TensorId row) const { return find_row(graph_.doc(), graph_.slot(row)); }
  bool is_weight(TensorId row) const { return graph_.slot(row) && weight_[graph_.slot(row)]; }
  bool holds_gradient(TensorId row) const {
    const Slot* slot = slot_of(row);
    return slot && slot->origin == SlotOrigin::gradient;
  }
  bool lives_on(TensorId row) const {
    const Slot* slot = slot_of(row);
    return slot && slot->origin != SlotOrigin::produced && slot->origin != SlotOrigin::input &&
           !is_weight(row);
  }
  bool same_sizes(TensorId a, TensorId b) const { return graph_.tensor(a).sizes == graph_.tensor(b).sizes; }

  /// Whether a write that the row shows at `op` satisfies `f`.
  template <class F>
  bool any_writer(TensorId row, OpId op, F&& f) const {
    bool found = false;
    (void)graph_.each_write_behind(row, op, [&](const TraceGraph::Write& write) {
      found = f(write.op);
      return found;
    });
    return found;
  }
  bool from_gradients(TensorId row, OpId op, bool in_backward) {
    if (is_weight(row)) return false;
    if (any_writer(row, op, [&](OpId writer) {
          return made_[writer].gradient && (!in_backward || phase(writer) == Phase::optimizer);
        }))
      return true;
    return !in_backward && holds_gradient(row);
  }
  bool reads_gradients(OpId op, bool in_backward = false) {
    const auto reads = graph_.reads(op);
    return std::any_of(reads.begin(), reads.end(),
                       [&](TensorId row) { return from_gradients(row, op, in_backward); });
  }
  bool writes_state(OpId op) const {
    const OpRow& row = graph_.op(op);
    // A sharded model gathers its weights repeatedly, in backward too.
    const bool gathers = is_collective(row.name) || row.name.starts_with("fsdp::") ||
                         (row.phase == Phase::backward && overwrites_blindly(row.name));
    if (gathers || (row.flags & kOpHostWrite)) return false;
    const auto written = graph_.written(op);
    return std::any_of(written.begin(), written.end(), [&](TensorId each) {
      const Slot* slot = slot_of(each);
      return slot && (is_weight(each) || slot->origin == SlotOrigin::optimizer_state);
    });
  }
  bool overwrites_gradients(OpId op) {
    const auto written = graph_.written(op);
    return std::any_of(written.begin(), written.end(),
                       [&](TensorId row) { return row && from_gradients(row, op, /*in_backward=*/false); });
  }

  /// Finds the op after which gradients exist, and the end of the last backward. False if there are no
  /// gradients.
  bool find_gradients() {
    bool before = false;
    for (const Slot& slot : graph_.doc().slots) before = before || slot.origin == SlotOrigin::gradient;
    for (const OpId op : graph_.ops()) {
      if (!recorded(op, Phase::backward)) continue;
      if (last_ < 0) first_ = op.row();
      last_ = op.row();
    }
    if (last_ < 0 && before) first_ = -1;
    return last_ >= 0 || before;
  }

  /// Values that a later forward pass uses: they are not part of an update, whatever they were computed from.
  void find_what_forward_uses() {
    for (std::int32_t i = last_ - 1; i > first_; --i) {
      const OpId op{i};
      if (recorded(op, Phase::backward)) continue;
      for_forward_[op] = for_forward_[op] || (differentiable(op) && !writes_state(op));
      if (!for_forward_[op]) continue;
      for (const TensorId row : graph_.reads(op)) {
        if (is_weight(row)) continue;
        (void)any_writer(row, op, [&](OpId writer) {
          if (writer.row() > first_ && !recorded(writer, Phase::backward)) for_forward_[writer] = true;
          return false;
        });
      }
    }
  }

  void visit(OpId op) {
    Made& made = made_[op];
    if (recorded(op, Phase::backward)) {
      // A hook may update weights while the pass runs.
      if (!again(op) && (writes_state(op) || reads_gradients(op, /*in_backward=*/true)))
        phase(op) = Phase::optimizer;
      made.gradient = !again(op);
    } else if (recorded(op, Phase::optimizer)) {
      // The forward pass of a closure.
      if (op.row() < last_ && for_forward_[op] && differentiable(op)) phase(op) = Phase::forward;
      made.gradient = phase(op) == Phase::optimizer;
    } else if (written_meanwhile(op)) {
      phase(op) = Phase::backward;
      made.gradient = true;
    } else if (may_flip(op) && (reads_gradients(op) || writes_state(op) || overwrites_gradients(op))) {
      phase(op) = Phase::optimizer;
      made.gradient = true;
    }
  }

  /// The host wrote into the backward pass's memory while it ran (or a read found unwritten memory there).
  bool written_meanwhile(OpId op) const {
    if (!(graph_.op(op).flags & kOpHostWrite) || op.row() <= first_ || op.row() >= last_) return false;
    const auto written = graph_.written(op);
    return std::all_of(written.begin(), written.end(), [&](TensorId row) {
      const Slot* slot = slot_of(row);
      return slot && slot->origin == SlotOrigin::produced;
    });
  }

  /// Averages of weights, in place or into new memory, after the weights were updated.
  void find_averages(OpId op) {
    if (!may_flip(op) || differentiable(op)) return;
    Made& made = made_[op];
    bool average = false;
    for (const TensorId read : graph_.reads(op)) {
      const auto same = [&](TensorId row) { return row && same_sizes(row, read); };
      const auto written = graph_.written(op);
      if (std::none_of(written.begin(), written.end(), same)) continue;
      const bool updated = is_weight(read) && any_writer(read, op, [&](OpId writer) {
                             return phase(writer) == Phase::optimizer;
                           });
      made.weight =
          made.weight || updated || any_writer(read, op, [&](OpId writer) { return made_[writer].weight; });
      made.state = made.state || lives_on(read) ||
                   any_writer(read, op, [&](OpId writer) { return made_[writer].state; });
      average = average || std::any_of(written.begin(), written.end(),
                                       [&](TensorId row) { return same(row) && lives_on(row); });
    }
    if (made.weight && (average || (made.state && graph_.consumers(op).empty())))
      phase(op) = Phase::optimizer;
  }

  bool only_looks(OpId op) const { return graph_.written(op).empty(); }
  /// It uses no values, only sizes.
  bool only_measures(OpId op) const { return (graph_.op(op).flags & kOpUninitialised) != 0; }

  /// An op whose results only the optimizer uses is the optimizer's.
  void find_feeder(OpId op) {
    if (!may_flip(op) || only_looks(op)) return;
    bool feeds = false;
    for (const OpId reader : graph_.consumers(op)) {
      if (only_looks(reader) || only_measures(reader)) continue;
      if (phase(reader) != Phase::optimizer) return;
      feeds = true;
    }
    if (feeds) phase(op) = Phase::optimizer;
  }

  /// A view, or the read of a number, of a result of the optimizer.
  void find_view(OpId op) {
    if (!may_flip(op) || !only_looks(op)) return;
    const auto reads = graph_.reads(op);
    if (std::any_of(reads.begin(), reads.end(), [&](TensorId row) {
          return !is_weight(row) && any_writer(row, op, [&](OpId writer) {
            return phase(writer) == Phase::optimizer && writer.row() > first_;
          });
        }))
      phase(op) = Phase::optimizer;
  }

  TraceGraph graph_;
  PerRow<Slot, bool> weight_;
  std::vector<Phase> phase_;
  PerRow<OpRow, Made> made_;
  PerRow<OpRow, bool> for_forward_;
  std::int32_t first_ = 0, last_ = -1;  ///< backward ops
};

}  // namespace

bool settle_phases(SnapshotDoc& doc) {
  bool changed = mark_old_gradients(doc);
  // An op that fed only the optimizer is now the optimizer's, and so are other readers of its results.
  constexpr int kRounds = 8;
  bool goes_on = true;
  for (int round = 0; round < kRounds && std::exchange(goes_on, false); ++round) {
    const std::vector<Phase> phases = Phases(doc).settle();
    for (std::size_t i = 0; i < phases.size(); ++i)
      goes_on = std::exchange(doc.ops[i].phase, phases[i]) != phases[i] || goes_on;
    changed = changed || goes_on;
  }
  return changed;
}

}  // namespace nanquest
