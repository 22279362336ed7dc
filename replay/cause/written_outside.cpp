#include "replay/cause/written_outside.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/cause/culprit_info.h"
#include "replay/history/columns.h"

namespace nanquest {
namespace {

struct Outside {
  std::string name, kind;  ///< "head.weight", "parameter"
  Origin origin = Origin::gradient;
  OpId after, before;  ///< it was written between these; none: the start, and the end, of what is on record
  BadCounts bad;
  std::uint64_t elements = 0;
};

std::string bad_text(const Outside& found) {
  return std::to_string(found.bad.total()) + " of " + std::to_string(found.elements) +
         " elements are NaN or Inf";
}

/// The last op before `before` that computes something.
OpId last_computed(const Case& c, OpId before) {
  for (std::int32_t i = before.row() - 1; i >= 0; --i) {
    const OpRow& op = *c.row(i);
    if (!(op.flags & (kOpHostWrite | kOpUninitialised)) && !computes_nothing(op)) return OpId{i};
  }
  return {};
}

/// The first op on record that is given the memory at `from` or later.
OpId first_user(const Case& c, SlotId slot, std::int32_t from) {
  for (std::int32_t i = std::max(from, 0); i < c.graph().end().row(); ++i)
    for (const TraceGraph::Argument& a : c.graph().arguments(OpId{i}))
      if (a.row && c.graph().slot(a.row) == slot) return OpId{i};
  return {};
}

std::optional<Outside> bad_in(const Case& c, TensorId row) {
  const StatsRow* const stats = row ? c.graph().stats(row) : nullptr;
  if (!stats || stats->non_finite() == 0) return std::nullopt;
  return Outside{{},          {}, Origin::gradient, {}, {}, {stats->nan, stats->pos_inf, stats->neg_inf},
                 stats->count};
}

/// State whose last bad write is one of the host.
std::optional<Outside> state_written(const Case& c, const NamedTensor& state, const char* kind,
                                     Origin origin) {
  const SlotId slot{state.slot};
  if (!slot) return std::nullopt;
  const auto& writes = c.graph().writes(slot);
  const auto last = std::find_if(writes.rbegin(), writes.rend(),
                                 [&](const TraceGraph::Write& w) { return c.graph().bad(w.row); });
  if (last == writes.rend() || !(c.graph().op(last->op).flags & kOpHostWrite)) return std::nullopt;
  auto found = bad_in(c, last->row);
  if (!found) return std::nullopt;
  found->name = state.name;
  found->kind = kind;
  found->origin = origin;
  found->after = last_computed(c, last->op);
  found->before = first_user(c, slot, last->op.row());
  return found;
}

/// A gradient that the update was to be made with, in memory that no op on record wrote.
std::optional<Outside> gradient_written(const Case& c, std::size_t i) {
  const TensorId row{c.doc().gradients[i]};
  auto found = bad_in(c, row);
  const SlotId slot = found ? c.graph().slot(row) : SlotId{};
  if (!slot) return std::nullopt;
  if (const OpId writer = c.graph().producer(row, c.graph().end());
      writer && !(c.graph().op(writer).flags & kOpHostWrite))
    return std::nullopt;
  found->name = i < c.doc().parameters.size() ? c.doc().parameters[i].name : get(c.doc(), slot).name;
  found->kind = "gradient of parameter";
  found->before = first_user(c, slot, 0);
  found->after = last_computed(c, found->before ? found->before : c.graph().end());
  return found;
}

std::optional<Outside> find(const Case& c) {
  const SnapshotDoc& doc = c.doc();
  for (std::size_t i = 0; i < doc.gradients.size(); ++i)
    if (auto found = gradient_written(c, i)) return found;
  for (const NamedTensor& t : doc.parameters)
    if (auto found = state_written(c, t, "parameter", Origin::parameter)) return found;
  for (const NamedTensor& t : doc.buffers)
    if (auto found = state_written(c, t, "buffer", Origin::buffer)) return found;
  for (const NamedTensor& t : doc.optimizer)
    if (auto found = state_written(c, t, "optimizer state", Origin::optimizer_state)) return found;
  return std::nullopt;
}

/// What the gate counted in this step, from the series; "" if it saw nothing bad, or the file has none.
std::string seen_by_gate(const SnapshotDoc& doc) {
  const std::vector<double> steps = column_named(doc, "scalars", "step"),
                            bad = column_named(doc, "scalars", "bad_gradients");
  if (steps.empty() || bad.empty() || static_cast<std::int64_t>(steps.back()) != doc.step ||
      !(bad.back() > 0))
    return "";
  return std::to_string(static_cast<std::int64_t>(bad.back())) + " elements of the gradients were NaN or Inf";
}

constexpr const char* kLook =
    "Look for code outside of PyTorch that writes there (NumPy on tensor.numpy(), from_numpy, C++, a number "
    "of "
    "Python such as float(\"nan\")), and check what it writes with isfinite before it is used.";

void complete(const Case& c, const Outside& found, Verdict& v) {
  const std::string what = found.kind + " " + found.name;
  v.origin = found.origin;
  v.culprit = culprit_info(c, found.before ? found.before.row() : found.after.row());
  v.phase =
      found.origin == Origin::gradient && found.before ? c.graph().op(found.before).phase : Phase::input;
  v.culprit.tensor = found.name;
  v.culprit.value = from_word<BadValue>(value_name(found.bad)).value_or(BadValue::mixed);
  v.culprit.count = found.bad.total();
  v.source = "the values that the step left, and the operations on record";
  v.evidence.push_back({"non-finite in the " + what, bad_text(found)});
  const std::string after = found.after ? c.op_with_number(found.after.row()) : "the start of the record",
                    before = found.before ? c.op_with_number(found.before.row()) : "the end of the step";
  v.evidence.push_back({"written outside of the recorded operations", "between " + after + " and " + before});
  v.explanation =
      "The " + what + " is bad when the step ends: " + bad_text(found) +
      ". No operation of the replay made that: it was written outside of the recorded operations, "
      "between " +
      after + " and " + before + ".";
  v.advice = kLook;
  if (found.origin == Origin::gradient) return;
  v.claims = {{Label::bad_state,
               {v.evidence.front().name + ": " + v.evidence.front().value},
               {"what wrote these numbers is not on record"},
               Depth::size}};
}

}  // namespace

bool find_written_outside(const Case& c, Verdict& v) {
  if (c.doc().gate != Gate::non_finite) return false;
  const auto found = find(c);
  const std::string seen = found ? "" : seen_by_gate(c.doc());
  if (!found && seen.empty()) return false;
  v.found = true;
  v.on_record.clear();
  v.cause = Label::unknown;
  v.precision.verdict = PrecisionVerdict::not_a_precision_matter;
  if (found) {
    complete(c, *found, v);
    return true;
  }
  v.origin = Origin::gradient;
  v.phase = Phase::optimizer;
  v.evidence.push_back({"seen when the step ended", seen});
  v.explanation =
      "When the step ended, " + seen +
      ". No operation of the replay made that, and no tensor in the file holds it: it was written "
      "outside of the recorded operations, between backward and the update.";
  v.advice = kLook;
  return true;
}

}  // namespace nanquest
