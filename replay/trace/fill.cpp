#include "replay/trace/fill.h"

#include <algorithm>
#include <exception>

#include "probe/observe/tensor_scan.h"
#include "probe/snapshot/check.h"
#include "probe/trace/op_facts.h"
#include "replay/trace/environment.h"
#include "replay/trace/impl.h"
#include "replay/trace/special.h"

namespace nanquest {
namespace trace {
namespace {

/// As many as the recorder judges: a step that went wrong everywhere is told by its first births.
constexpr std::size_t kMaxBirthsJudged = 64;

/// What is known of one storage while the run goes on.
struct SlotValues {
  bool initialised = true;          ///< false between an uninitialised producer and the first write
  bool scratch = false;             ///< its values mean nothing
  std::vector<std::int32_t> known;  ///< rows with statistics of its present values
};

/// One run as recorded; every row gets its statistics at its moment.
class Filler {
 public:
  Filler(const Replayer::Impl& impl, SnapshotDoc& doc)
      : impl_(impl),
        doc_(doc),
        machine_(impl.recorded(), impl.plan, impl.source(), Precision::as_recorded, no_edit_),
        slots_(doc.slots.size()) {
    for (std::size_t i = 0; i < doc.ops.size(); ++i)
      for (std::size_t k = 0; k < impl.plan.ops[i].outputs.size(); ++k)
        if (const std::int32_t slot = slot_of(impl.plan.ops[i].outputs[k]);
            slot != kNone && is_scratch(doc.ops[i].name, k))
          slots_[static_cast<std::size_t>(slot)].scratch = true;
  }

  /// Ops that made non-finite values out of finite inputs.
  std::vector<std::int32_t> run() {
    for (std::size_t i = 0; i < doc_.ops.size(); ++i) visit(static_cast<std::int32_t>(i));
    look(doc_.loss, Need::values_and_hash);
    for (const std::int32_t row : doc_.gradients) look(row, Need::values_and_hash);
    return std::move(births_);
  }

 private:
  void visit(std::int32_t index) {
    OpRow& op = doc_.ops[static_cast<std::size_t>(index)];
    const bool finite = read(index, op);
    const StepOutcome outcome = machine_.step(index);
    const bool bad = (outcome.ran || outcome.substituted) && write(op);
    machine_.finish(index);
    if (!bad || !finite || (op.flags & (kOpUninitialised | kOpOpaque | kOpFailed | kOpHostWrite))) return;
    op.flags |= kOpBirth;
    births_.push_back(index);
  }

  /// Looks at the op's arguments; true if nothing bad goes in.
  bool read(std::int32_t index, const OpRow& op) {
    const OpPlan& plan = impl_.plan.ops[static_cast<std::size_t>(index)];
    bool finite = true;
    for (const ArgPlan& arg : plan.args)
      if (arg.read)
        for (const std::int32_t row : arg.rows) finite = !reads_bad(row) && finite;
    if (!plan.args.empty()) return finite;
    for (std::int32_t a = op.first_arg; a < op.first_arg + op.arg_count;
         ++a) {  // an op that is never executed
      const ArgRow& token = doc_.args[static_cast<std::size_t>(a)];
      if (token.kind == ArgKind::tensor) finite = !reads_bad(token.tensor) && finite;
    }
    return finite;
  }

  bool reads_bad(std::int32_t row) {
    const std::int32_t slot = slot_of(row);
    if (slot == kNone || !slots_[static_cast<std::size_t>(slot)].initialised) return false;
    const StatsRow* stats = look(row, Need::values);
    return stats && stats->non_finite() > 0;
  }

  /// Looks at what the op wrote; true if something bad is among it.
  bool write(const OpRow& op) {
    bool bad = false;
    const auto begin = doc_.written.begin() + op.first_written;
    const std::vector<std::int32_t> rows(begin, begin + op.written_count);
    for (const std::int32_t row : rows) {
      if (slot_of(row) == kNone) continue;
      SlotValues& slot = slots_[static_cast<std::size_t>(slot_of(row))];
      slot.initialised = !(op.flags & kOpUninitialised);
      slot.known.clear();
    }
    for (const std::int32_t row : rows) {
      if (op.flags & kOpUninitialised) continue;
      const StatsRow* stats = look(row, Need::values_and_hash);
      bad = bad || (stats && stats->non_finite() > 0);
    }
    return bad;
  }

  std::int32_t slot_of(std::int32_t row) const {
    return row == kNone ? kNone : doc_.tensors[static_cast<std::size_t>(row)].slot;
  }

  /// What the recorder gives: what is only read needs no hash.
  enum class Need { values, values_and_hash };

  /// Statistics of the row's values now; null if they can't be read.
  const StatsRow* look(std::int32_t row, Need need) {
    if (slot_of(row) == kNone || slots_[static_cast<std::size_t>(slot_of(row))].scratch) return nullptr;
    TensorRow& tensor = doc_.tensors[static_cast<std::size_t>(row)];
    const bool known = tensor.stats != kNone &&
                       (need == Need::values || doc_.stats[static_cast<std::size_t>(tensor.stats)].has_hash);
    if (!known) {
      const std::int32_t found = statistics(row, tensor);
      if (found != kNone) tensor.stats = found;
    }
    return tensor.stats == kNone ? nullptr : &doc_.stats[static_cast<std::size_t>(tensor.stats)];
  }

  std::int32_t statistics(std::int32_t row, const TensorRow& tensor) {
    std::vector<std::int32_t>& known = slots_[static_cast<std::size_t>(tensor.slot)].known;
    for (const std::int32_t other : known) {
      const TensorRow& t = doc_.tensors[static_cast<std::size_t>(other)];
      if (t.dtype == tensor.dtype && t.storage_offset == tensor.storage_offset && t.sizes == tensor.sizes &&
          t.strides == tensor.strides && ((t.flags ^ tensor.flags) & (kTensorConj | kTensorNeg)) == 0)
        return t.stats;
    }
    try {
      if (!machine_.slots().available(row)) return kNone;
      doc_.stats.push_back(measure(machine_.slots().view(row), true, true, doc_.hash_kind));
    } catch (const std::exception&) {  // the op that reads it says what is wrong
      return kNone;
    }
    known.push_back(row);
    return static_cast<std::int32_t>(doc_.stats.size()) - 1;
  }

  const Replayer::Impl& impl_;
  SnapshotDoc& doc_;
  TraceEdit no_edit_;
  Machine machine_;
  std::vector<SlotValues> slots_;
  std::vector<std::int32_t> births_;
};

/// The precision above what the op computes in; as_recorded if there is none. Rule of probe/capture/birth.h.
Precision one_up(const SnapshotDoc& doc, const OpPlan& op) {
  if (op.noise) return Precision::as_recorded;
  bool low = false, single = false;
  const auto add = [&](at::ScalarType type) {
    low = low || c10::isReducedFloatingType(type);
    single = single || type == at::kFloat;
  };
  for (const ArgPlan& arg : op.args) {
    for (const std::int32_t row : arg.rows)
      if (row != kNone) add(scalar_type_of(doc.tensors[static_cast<std::size_t>(row)].dtype));
    if (arg.kind ==
        ArgPlan::Kind::scalar_type)  // a cast reads the wider format only: its target is what is raised
      low = low || c10::isReducedFloatingType(static_cast<at::ScalarType>(arg.constant.toInt()));
  }
  return low ? Precision::fp32 : single ? Precision::fp64 : Precision::as_recorded;
}

/// Computes each birth one precision up, on the inputs that it had, and flags it.
void judge(const Replayer::Impl& impl, SnapshotDoc& doc, std::vector<std::int32_t> births) {
  births.resize(std::min(births.size(), kMaxBirthsJudged));
  TraceEdit raised;
  for (const std::int32_t op : births) {
    const Precision up = one_up(doc, impl.plan.ops[static_cast<std::size_t>(op)]);
    if (up != Precision::as_recorded) raised.op_precision[op] = up;
  }
  if (raised.op_precision.empty()) return;
  const TraceEdit no_edit;
  const SnapshotDoc& recorded = impl.recorded();
  Machine same(recorded, impl.plan, impl.source(), Precision::as_recorded, no_edit);
  Machine above(recorded, impl.plan, impl.source(), Precision::as_recorded, raised);
  const std::int32_t last = raised.op_precision.rbegin()->first;
  for (std::int32_t op = 0; op <= last; ++op) {
    if (raised.op_precision.count(op)) {
      const StepOutcome outcome = above.step_isolated(op, same.slots());
      Badness bad;
      for (const at::Tensor& tensor : outcome.outputs) bad.add(badness(tensor));
      for (const at::Tensor& tensor : outcome.written) bad.add(badness(tensor));
      // An op without a kernel up there, or on memory that can't grow, was run as recorded: that says
      // nothing.
      if (outcome.ran && !outcome.failed && outcome.note.empty())
        doc.ops[static_cast<std::size_t>(op)].flags |= bad.any ? kOpBirthStays : kOpBirthFiniteAbove;
    }
    (void)same.step(op);
    same.finish(op);
  }
}

}  // namespace

SnapshotDoc fill(const Replayer::Impl& impl) {
  SnapshotDoc doc = impl.recorded();
  if (!check_doc(doc)) return doc;
  try {
    const RunScope scope(doc);
    judge(impl, doc, Filler(impl, doc).run());
  } catch (const std::exception&) {  // memory is exhausted: what was found so far is true
  }
  return doc;
}

}  // namespace trace

bool lacks_statistics(const SnapshotDoc& doc) {
  bool wrote = false, looked = false, all = true;
  for (const OpRow& op : doc.ops) {
    if (op.flags & (kOpHostWrite | kOpUninitialised)) continue;
    for (std::int64_t i = op.first_written; i < std::int64_t{op.first_written} + op.written_count; ++i) {
      if (i < 0 || static_cast<std::size_t>(i) >= doc.written.size()) continue;
      const std::int32_t row = doc.written[static_cast<std::size_t>(i)];
      if (row < 0 || static_cast<std::size_t>(row) >= doc.tensors.size()) continue;
      const bool known = doc.tensors[static_cast<std::size_t>(row)].stats != kNone;
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
