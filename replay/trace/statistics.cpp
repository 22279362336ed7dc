#include "replay/trace/statistics.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "probe/snapshot/check.h"
#include "probe/tensor/one_up.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/births.h"
#include "probe/trace/walk.h"
#include "replay/trace/environment.h"
#include "replay/trace/hidden.h"
#include "replay/trace/replayer_state.h"

namespace nanquest {
namespace trace {
namespace {

/// One run as recorded; every row gets its statistics at its moment.
class Filler {
 public:
  Filler(const Replayer::Impl& impl, SnapshotDoc& doc)
      : plan_(impl.plan()),
        doc_(doc),
        machine_(impl.recorded(), impl.plan(), impl.source(), Precision::as_recorded, no_edit_),
        known_(doc.slots.size()) {}

  /// Ops that made non-finite values from finite inputs.
  std::vector<OpId> run() {
    for (const OpId op : ids_of<OpRow>(doc_)) visit(op);
    (void)is_bad(TensorId{doc_.loss}, Need::values_and_hash);
    for (const std::int32_t row : doc_.gradients) (void)is_bad(TensorId{row}, Need::values_and_hash);
    return std::move(births_);
  }

  /// After `run`: whether the loss or a gradient came out non-finite in it, whatever is recorded.
  bool harmed() {
    const auto bad = [&](std::int32_t row) {
      return plan_.graph.slot(TensorId{row}) && machine_.slots().available(TensorId{row}) &&
             badness(machine_.slots().view(TensorId{row})).any;
    };
    return bad(doc_.loss) || std::any_of(doc_.gradients.begin(), doc_.gradients.end(), bad);
  }

 private:
  /// As the recorder does: what is only read needs no hash.
  enum class Need { values, values_and_hash };

  void visit(OpId id) {
    OpRow& op = get(doc_, id);
    bool finite = true, bad = false;
    for (const TensorId row : plan_.graph.reads(id)) finite = !is_bad(row, Need::values) && finite;
    const StepOutcome outcome = machine_.step(id);
    for (const TensorId row : plan_.graph.written(id))
      if (row) known_[plan_.graph.slot(row)].clear();
    if ((outcome.ran || outcome.substituted) && !(op.flags & kOpUninitialised))
      for (const TensorId row : plan_.ops[id].written) bad = is_bad(row, Need::values_and_hash) || bad;
    machine_.finish(id);
    if (!bad || !finite || !can_be_birth(op.flags)) return;
    op.flags |= kOpBirth;
    births_.push_back(id);
  }

  /// Looks at the row's values as they are now; false also if they can't be read.
  bool is_bad(TensorId row, Need need) {
    if (!plan_.graph.slot(row)) return false;
    TensorRow& tensor = get(doc_, row);
    const StatsRow* stats = find_row(doc_, StatsId{tensor.stats});
    if (!stats || (need == Need::values_and_hash && !stats->has_hash))
      if (const StatsId found = look(row)) tensor.stats = found.row();
    stats = find_row(doc_, StatsId{tensor.stats});
    return stats && stats->non_finite() > 0;
  }

  StatsId look(TensorId row) {
    std::vector<TensorId>& known = known_[plan_.graph.slot(row)];
    for (const TensorId other : known)
      if (same_values(get(doc_, other), get(doc_, row))) return StatsId{get(doc_, other).stats};
    try {
      if (!machine_.slots().available(row)) return {};
      doc_.stats.push_back(measure(machine_.slots().view(row), true, true, doc_.hash_kind));
    } catch (const std::exception&) {  // the op that reads it reports what is wrong
      return {};
    }
    known.push_back(row);
    return StatsId{doc_.stats.size() - 1};
  }

  static bool same_values(const TensorRow& a, const TensorRow& b) {
    return same_view(a, b) && ((a.flags ^ b.flags) & (kTensorConj | kTensorNeg)) == 0;
  }

  const TracePlan& plan_;
  SnapshotDoc& doc_;
  TraceEdit no_edit_;
  Machine machine_;
  PerRow<Slot, std::vector<TensorId>> known_;  ///< rows with statistics of the slot's present values
  std::vector<OpId> births_;
};

/// The precision above that in which the op computes; as_recorded if there is none.
Precision one_up(const SnapshotDoc& doc, const OpPlan& op) {
  if (op.noise) return Precision::as_recorded;
  FormatsUsed formats;
  for (const ArgPlan& arg : op.args) {
    for (const TensorId row : arg.rows)
      if (row) formats.add(scalar_type_of(get(doc, row).dtype));
    if (arg.kind == ArgPlan::Kind::scalar_type)
      formats.add(static_cast<at::ScalarType>(arg.constant.toInt()));
  }
  const auto up = formats.one_up();
  return !up ? Precision::as_recorded : *up == at::kFloat ? Precision::fp32 : Precision::fp64;
}

/// The births to judge, the most relevant first: those that reached the harm, then those that may have left
/// the range of a short format. What an infinite constant made is infinite one precision up as well.
std::vector<OpId> worth_judging(const Replayer::Impl& impl, SnapshotDoc& doc, std::vector<OpId> births) {
  std::erase_if(births, [&](OpId op) {
    const bool constant = bad_constants(doc, op).infinite;
    if (constant) get(doc, op).flags |= kOpBirthStays;
    return constant;
  });
  if (births.empty()) return births;
  const TraceGraph graph(doc);
  const Walk walk(graph);
  const auto rank = [&](OpId op) {
    return walk.reached(op) ? 0 : one_up(doc, impl.plan().ops[op]) == Precision::fp32 ? 1 : 2;
  };
  std::stable_sort(births.begin(), births.end(), [&](OpId a, OpId b) { return rank(a) < rank(b); });
  births.resize(std::min<std::size_t>(births.size(), kMaxBirthsJudged));
  return births;
}

/// Computes each birth one precision up, on its inputs, and flags it; range overflows also by what becomes of
/// them.
void judge(const Replayer::Impl& impl, SnapshotDoc& doc, std::vector<OpId> births) {
  TraceEdit raised;
  for (const OpId op : worth_judging(impl, doc, std::move(births))) {
    const Precision up = one_up(doc, impl.plan().ops[op]);
    if (up != Precision::as_recorded) raised.op_precision[op.row()] = up;
  }
  if (raised.op_precision.empty()) return;
  const TraceEdit no_edit;
  const SnapshotDoc& recorded = impl.recorded();
  Machine same(recorded, impl.plan(), impl.source(), Precision::as_recorded, no_edit);
  Machine above(recorded, impl.plan(), impl.source(), Precision::as_recorded, raised);
  HiddenFollower hidden(impl.plan(), same);
  const OpId last{raised.op_precision.rbegin()->first};
  for (const OpId op : impl.plan().graph.ops()) {
    if (op > last && !hidden.any()) break;
    std::optional<StepOutcome> finite;
    if (raised.op_precision.count(op.row())) {
      StepOutcome outcome = above.step_isolated(op, same.slots());
      Badness bad;
      for (const at::Tensor& tensor : outcome.outputs) bad.add(badness(tensor));
      for (const at::Tensor& tensor : outcome.written) bad.add(badness(tensor));
      // An op that ran as recorded after all shows nothing.
      if (outcome.ran && !outcome.kept_format && outcome.note.empty()) {
        get(doc, op).flags |= bad.any ? kOpBirthStays : kOpBirthFiniteAbove;
        if (!bad.any) finite = std::move(outcome);
      }
    }
    hidden.before(op);
    (void)same.step(op);
    hidden.after(op, finite ? &*finite : nullptr);
    same.finish(op);
  }
  hidden.flag(doc);
}

/// A birth that is recorded as neither.
bool is_unjudged(const OpRow& op) {
  return (op.flags & kOpBirth) && !(op.flags & (kOpBirthFiniteAbove | kOpBirthStays));
}

}  // namespace

bool has_unjudged_births(const SnapshotDoc& doc) {
  return recorded_device(doc) != "cpu" && std::any_of(doc.ops.begin(), doc.ops.end(), is_unjudged);
}

SnapshotDoc judge_births(const Replayer::Impl& impl) {
  SnapshotDoc doc = impl.recorded();
  if (!check_doc(doc)) return doc;
  try {
    const RunScope scope(doc);
    std::vector<OpId> births;
    for (const OpId op : ids_of<OpRow>(doc))
      if (is_unjudged(get(doc, op))) births.push_back(op);
    judge(impl, doc, std::move(births));
  } catch (const std::exception&) {  // out of memory: what was found so far is true
  }
  return doc;
}

SnapshotDoc fill(const Replayer::Impl& impl, bool* harmed) {
  SnapshotDoc doc = impl.recorded();
  if (!check_doc(doc)) return doc;
  try {
    const RunScope scope(doc);
    Filler filler(impl, doc);
    std::vector<OpId> births = filler.run();
    if (harmed) *harmed = filler.harmed();
    judge(impl, doc, std::move(births));
  } catch (const std::exception&) {  // out of memory: what was found so far is true
  }
  return doc;
}

}  // namespace trace

bool lacks_statistics(const SnapshotDoc& doc) {
  bool wrote = false, looked = false, all = true;
  const TraceGraph graph(doc);
  for (const OpId op : graph.ops()) {
    if (graph.op(op).flags & (kOpHostWrite | kOpUninitialised)) continue;
    for (const TensorId row : graph.written(op)) {
      if (!row) continue;
      const bool known = graph.tensor(row).stats != kNone;
      wrote = true;
      looked = looked || known;
      all = all && known;
    }
  }
  // A standing trace knows only what was alive at its end.
  return wrote && (doc.basis == "survivors" ? !all : !looked);
}

SnapshotDoc fill_statistics(const Replayer& replayer) {
  return trace::fill(replayer.impl());
}

}  // namespace nanquest
