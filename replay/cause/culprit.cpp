#include "replay/cause/culprit.h"

#include <algorithm>
#include <optional>

#include "probe/observe/op_traits.h"
#include "probe/trace/collectives.h"
#include "probe/trace/culprit.h"
#include "probe/trace/names.h"
#include "probe/trace/origins.h"
#include "replay/case/case.h"
#include "replay/verdict/words.h"

namespace nanquest {
namespace {

/// An argument tensor of the op that was bad when the op read it, in another storage than `slot`; kNone if
/// there is none.
std::int32_t bad_argument(const Case& c, std::int32_t op, std::int32_t slot = kNone) {
  for (const Case::TensorArgument& a : c.tensor_arguments(op)) {
    if (c.doc().tensors[a.tensor].slot != slot && c.graph().bad(TensorId{a.tensor})) return a.tensor;
  }
  return kNone;
}

/// What another rank sent to this one only.
bool is_receive(const std::string& op) {
  return op == "c10d::recv_" || op == "c10d::recv_any_source_";
}

/// Where a bad value was seen.
struct Seen {
  std::int32_t op = kNone;
  std::int32_t row = kNone;  ///< the tensor that `op` read; kNone if `op` made it
};

bool touches(const Case& c, std::int32_t op, std::int32_t slot) {
  const auto arguments = c.tensor_arguments(op);
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const Case::TensorArgument& a) { return c.doc().tensors[a.tensor].slot == slot; });
}

/// One op back: what filled the storage of the bad tensor. Unchanged if it came from outside; nothing if
/// another rank sent it. Ops that write where their schemas don't say so are found by what they read.
std::optional<Seen> before(const Case& c, const Seen& seen) {
  const std::int32_t slot = c.doc().tensors[seen.row].slot;
  for (std::int32_t i = seen.op - 1; i >= 0; --i) {
    const bool wrote = c.producer(seen.row, i + 1) == i;
    if (!wrote && !touches(c, i, slot)) continue;
    if (is_collective(c.row(i)->name) || (c.row(i)->flags & kOpHostWrite)) return std::nullopt;
    if (const std::int32_t row = bad_argument(c, i, slot); row != kNone) return Seen{i, row};
    if (wrote) return Seen{i, kNone};
  }
  return seen;
}

/// The first send of something bad before `op`: what another rank sent back may follow from it, as a
/// pipeline's gradients do.
Seen sent_before(const Case& c, std::int32_t op) {
  for (std::int32_t i = 0; i < op; ++i)
    if (c.row(i)->name == "c10d::send")
      if (const std::int32_t row = bad_argument(c, i); row != kNone) return {i, row};
  return {op, kNone};
}

/// The origin of the bad values that this rank itself passed to the collective, or had sent before it
/// received some; nothing if it passed finite ones.
std::optional<Seen> bad_given(const Case& c) {
  Seen seen{c.op_index(), bad_argument(c, c.op_index())};
  if (is_receive(c.row(c.op_index())->name)) seen = sent_before(c, c.op_index());
  while (seen.row != kNone) {
    const auto earlier = before(c, seen);
    if (!earlier || earlier->op == seen.op) return earlier;
    seen = *earlier;
  }
  return seen.op == c.op_index() ? std::nullopt : std::optional(seen);
}

void blame(SnapshotDoc& doc, const Seen& given) {
  Culprit& culprit = doc.culprit;
  culprit.op = given.op;
  culprit.phase = doc.ops[given.op].phase;
  if (given.row == kNone) return;
  const TensorRow& row = doc.tensors[given.row];
  Slot& slot = doc.slots[row.slot];
  // The parts of sharded weights have no names of their own.
  const Origin origin =
      from_word<Origin>(origin_name(origin_of(TraceGraph(doc), SlotId{row.slot}))).value_or(Origin::op);
  if (slot.name.empty() && origin != Origin::op)
    slot.name = "(a part of it, storage " + std::to_string(row.slot) + ")";
  culprit.origin = word(origin);
  culprit.tensor_name = slot.name;
  culprit.count = doc.stats[row.stats].non_finite();
  culprit.first.clear();
  if (origin != Origin::op) culprit.phase = Phase::input;
}

}  // namespace

void ensure_culprit(SnapshotDoc& doc) {
  if (doc.culprit.value.empty()) find_culprit(doc);
  const std::int32_t op = doc.culprit.op;
  const bool known = op >= 0 && static_cast<std::size_t>(op) < doc.ops.size();
  if (!known || !is_collective(doc.ops[static_cast<std::size_t>(op)].name)) return;
  // Its input may have been filled by an op whose schema doesn't say so.
  if (doc.culprit.origin != word(Origin::op) && doc.culprit.origin != word(Origin::input)) return;
  if (const auto given = bad_given(Case(doc, {}, {}))) blame(doc, *given);
}

void blame_suspect(SnapshotDoc& doc, const Suspect& suspect) {
  name_culprit(doc, suspect.op, suspect.row, [](const OpRow& op, std::int32_t position) {
    return argument_name(op.name, op.overload, position);
  });
}

}  // namespace nanquest
