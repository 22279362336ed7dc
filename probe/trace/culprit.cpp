#include "probe/trace/culprit.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "probe/trace/births.h"
#include "probe/trace/collectives.h"
#include "probe/trace/hidden.h"
#include "probe/trace/placement.h"

namespace nanquest {
namespace {

using Kind = Candidate::Kind;

Kind kind_of(SlotOrigin origin) {
  switch (origin) {
    case SlotOrigin::produced:
      return Kind::op;
    case SlotOrigin::input:
    case SlotOrigin::external:
      return Kind::input;
    case SlotOrigin::parameter:
    case SlotOrigin::buffer:
    case SlotOrigin::optimizer_state:
    case SlotOrigin::gradient:
    case SlotOrigin::loss_scale:
      return Kind::state;
  }
  return Kind::op;
}

std::vector<std::int64_t> index_of(const TensorRow& row, std::int64_t flat) {
  std::vector<std::int64_t> index(row.sizes.size());
  for (std::size_t d = row.sizes.size(); d-- > 0;) {
    const std::int64_t size = std::max<std::int64_t>(row.sizes[d], 1);
    index[d] = flat % size;
    flat /= size;
  }
  return index;
}

/// Fills in what is known of the bad values of a row, counting only these kinds.
void fill_from_row(Culprit& c, const TraceGraph& graph, TensorId row, ValueKinds kinds) {
  const StatsRow* s = graph.stats(row);
  if (!s) return;
  const BadCounts all{s->nan, s->pos_inf, s->neg_inf};
  const BadCounts harm = of_kinds(all, kinds).total() > 0 ? of_kinds(all, kinds) : all;
  c.value = value_name(harm);
  c.count = harm.total();
  // The first bad element may be an intended one.
  if (s->first_bad >= 0 && harm.total() == all.total()) c.first = index_of(graph.tensor(row), s->first_bad);
}

bool all_zero(const StatsRow* s) {
  return s && s->count > 0 && s->zero == s->count;
}

/// A loss scale of zero, which is not bad itself but makes bad values: the row as `op` read it, or as the
/// copies that `op` was given read it; none if there is none.
TensorId zero_scale(const TraceGraph& graph, OpId op) {
  constexpr int kCopies = 4;
  for (TensorId row : graph.reads(op)) {
    OpId reader = op;
    for (int i = 0; i < kCopies && all_zero(graph.stats(row)); ++i) {
      const OpId maker = graph.producer(row, reader);
      if (!maker) {
        if (get(graph.doc(), graph.slot(row)).origin == SlotOrigin::loss_scale) return row;
        break;
      }
      if (graph.reads(maker).size() != 1) break;
      row = graph.reads(maker).front();
      reader = maker;
    }
  }
  return {};
}

/// Whether the program gave the op the step's loss scale as a number, and that number is invalid.
bool has_bad_scale(const TraceGraph& graph, OpId op) {
  const double scale = graph.doc().loss_scale;
  if (std::isfinite(scale) && scale != 0) return false;
  if (scale == 0) return false;  // zero is too common to be recognised as the loss scale
  const BadConstants bad = bad_constants(graph.doc(), op);
  return std::isnan(scale) ? bad.nan : bad.infinite;
}

/// Nothing for an intended infinity that did no harm.
std::optional<Candidate> candidate_of(const TraceGraph& graph, const Walk& walk, const Root& root) {
  if (!root.row && has_bad_scale(graph, root.op)) return Candidate{Kind::state, root.op, {}};
  if (is_intended(graph, root)) {
    const std::vector<OpId> path = walk.path_to_harm(root.op);
    const OpId turned = first_harmful(graph, path, !root.row);
    if (turned) return Candidate{Kind::op, turned, {}};
    // Beside a NaN the infinity had no effect; alone it was carried to the end, which is allowed only for
    // memory.
    const bool other = walk.harm(path.back()) & ~root.kinds;
    if (other || walk.only_left(path.back())) return std::nullopt;
    return Candidate{Kind::op, path.back(), {}};
  }
  if (is_host_written(graph, root)) {
    const TensorId row = root.row ? root.row : graph.written(root.op).front();
    const SlotOrigin origin = get(graph.doc(), graph.slot(row)).origin;
    return Candidate{origin == SlotOrigin::produced ? Kind::filled : kind_of(origin), root.op, row};
  }
  if (const TensorId scale = root.row ? TensorId{} : zero_scale(graph, root.op))
    return Candidate{Kind::state, root.op, scale};
  if (!root.row) return Candidate{Kind::op, root.op, {}};
  return Candidate{kind_of(origin_of(graph, graph.slot(root.row))), root.op, root.row};
}

/// The kinds of bad values that did the harm of this candidate.
ValueKinds harm_of(const Walk& walk, const Candidate& candidate) {
  for (const Root& root : walk.roots())
    if (candidate.row && root.op == candidate.op && root.row == candidate.row) return root.kinds;
  return candidate.row || !walk.reached(candidate.op) ? kEveryKind : walk.harm(candidate.op);
}

/// The first bad row that the op wrote, none if all are good.
TensorId first_bad_written(const TraceGraph& graph, OpId op) {
  const auto written = graph.written(op);
  const auto found =
      std::find_if(written.begin(), written.end(), [&](TensorId row) { return graph.bad(row); });
  return found == written.end() ? TensorId{} : *found;
}

/// Fills in a culprit that the step did not compute.
void fill_outside(SnapshotDoc& doc, const TraceGraph& graph, const Candidate& best, ValueKinds harm,
                  const ArgumentName& argument_name) {
  Culprit& c = doc.culprit;
  const SlotId slot = graph.slot(best.row);
  const SlotOrigin origin = origin_of(graph, slot);
  c.origin = origin == SlotOrigin::produced && best.kind == Kind::op ? "op" : origin_name(origin);
  if (best.kind == Kind::input || best.kind == Kind::filled) c.origin = origin_name(SlotOrigin::input);
  c.tensor_name = graph.doc().slots[slot.index()].name;
  if (c.origin != origin_name(SlotOrigin::produced)) {
    c.phase = Phase::input;
    // Readers of the file find the values by this name.
    if (c.tensor_name.empty()) c.tensor_name = first_read_words(graph, slot, argument_name);
    get(doc, slot).name = c.tensor_name;
  }
  fill_from_row(c, graph, best.row, harm);
}

void fill(SnapshotDoc& doc, const TraceGraph& graph, const Walk& walk, const Candidate& best,
          const ArgumentName& argument_name) {
  Culprit& c = doc.culprit;
  c.op = best.op.row();
  c.phase = graph.op(best.op).phase;
  const ValueKinds harm = harm_of(walk, best);
  TensorId first = first_bad_written(graph, best.op);
  // The result of a collective may be visible only in the op after it, to which it was handed over.
  if (const OpId after = walk.next(best.op); !first && after) first = first_bad_written(graph, after);
  if (best.row) fill_outside(doc, graph, best, harm, argument_name);
  if (c.value.empty() || c.value == value_name({})) fill_from_row(c, graph, first, harm);
  if (!best.row && best.kind == Kind::state) {  // a number
    c.origin = origin_name(SlotOrigin::loss_scale);
    c.tensor_name = c.origin;
    c.phase = Phase::input;
  }
  for (const OpId op : walk.path_to_harm(best.op)) c.lineage.push_back(op.row());
}

}  // namespace

std::vector<Candidate> candidates_for_blame(const TraceGraph& graph, const Walk& walk) {
  std::vector<Candidate> all;
  for (const Root& root : walk.roots())
    if (const auto candidate = candidate_of(graph, walk, root)) all.push_back(*candidate);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool find_culprit(SnapshotDoc& doc, const ArgumentName& argument_name) {
  Culprit& c = doc.culprit = {};
  const TraceGraph graph(doc);
  const Walk walk(graph);
  OpId silent;
  for (const OpId op : graph.ops()) {
    if ((graph.op(op).flags & kOpBirth) && !walk.reached(op)) c.suppressed.push_back(op.row());
    if (!silent && hides_overflow(graph, op)) silent = op;
  }
  std::vector<Candidate> candidates = candidates_for_blame(graph, walk);
  // A bad loss or gradient has a cause, however harmless each value looks.
  const auto& gradients = doc.gradients;
  const bool seen = graph.bad(TensorId{doc.loss}) ||
                    std::any_of(gradients.begin(), gradients.end(),
                                [&](std::int32_t row) { return graph.bad(TensorId{row}); });
  if (candidates.empty() && seen)
    for (const Root& root : walk.roots())
      candidates.push_back({Kind::op, walk.path_to_harm(root.op).back(), {}});
  std::sort(candidates.begin(), candidates.end());
  if (!candidates.empty()) {
    fill(doc, graph, walk, candidates.front(), argument_name);
    return true;
  }
  // A range overflow that later ops hide counts only if no other harm was found.
  if (!silent) return false;
  fill(doc, graph, walk, {Kind::op, silent, {}}, argument_name);
  c.value = "silent";
  std::erase(c.suppressed, silent.row());
  return true;
}

void name_culprit(SnapshotDoc& doc, OpId op, TensorId row, const ArgumentName& argument_name) {
  const std::vector<std::int32_t> suppressed = std::move(doc.culprit.suppressed);
  doc.culprit = {};
  const TraceGraph graph(doc);
  Candidate candidate{Kind::op, op, row};
  if (!row) {
    candidate.row = zero_scale(graph, op);
    if (candidate.row || has_bad_scale(graph, op)) candidate.kind = Kind::state;
  } else {
    const SlotOrigin origin = origin_of(graph, graph.slot(row));
    const bool by_host = is_host_written(graph, {op, row});
    candidate.kind = by_host && origin == SlotOrigin::produced ? Kind::filled : kind_of(origin);
  }
  fill(doc, graph, Walk(graph), candidate, argument_name);
  doc.culprit.suppressed = suppressed;
}

void settle_name(SnapshotDoc& doc, const std::function<bool(const NamedTensor&)>& holds_bad) {
  Culprit& c = doc.culprit;
  if (c.tensor_name.empty()) return;
  for (const auto* group : {&doc.parameters, &doc.buffers, &doc.optimizer, &doc.batch}) {
    const auto known = std::find_if(group->begin(), group->end(), [&](const NamedTensor& each) {
      return each.slot != kNone && each.name == c.tensor_name;
    });
    if (known == group->end()) continue;
    const std::int32_t slot = known->slot;
    const auto shares = [&](const NamedTensor& each) { return each.slot == slot; };
    if (std::count_if(group->begin(), group->end(), shares) < 2 || holds_bad(*known)) return;
    const auto bad = std::find_if(group->begin(), group->end(),
                                  [&](const NamedTensor& each) { return shares(each) && holds_bad(each); });
    if (bad == group->end()) return;
    c.tensor_name = bad->name;
    get(doc, SlotId{slot}).name = bad->name;
    return;
  }
}

namespace {

std::string op_and_module(const SnapshotDoc& doc, const OpRow& op) {
  const ModuleRow* module = find_row(doc, ModuleId{op.module});
  return module ? op.name + " in " + module->path : op.name;
}

}  // namespace

std::string arrived_by(const SnapshotDoc& doc) {
  const Culprit& c = doc.culprit;
  const OpRow* op = find_row(doc, OpId{c.op});
  if (!op || c.origin != "op" || c.value == "silent" || !is_collective(op->name)) return "";
  return op_and_module(doc, *op);
}

std::string describe_culprit(const SnapshotDoc& doc) {
  const Culprit& c = doc.culprit;
  const OpRow* op = find_row(doc, OpId{c.op});
  if (!op) return "no harmful non-finite value was found in the recorded step";
  std::string where = op_and_module(doc, *op);
  const std::string pass = pass_of(doc, OpId{c.op}), part = part_of(doc, c.tensor_name);
  where.append(" (")
      .append(phase_name(op->phase))
      .append(op->node.empty() ? "" : ", " + op->node)
      .append(pass.empty() ? "" : ", " + pass)
      .append(")");
  const std::string what =
      std::to_string(c.count) + (c.value == "mixed" ? " non-finite values" : " x " + c.value);
  if (c.origin == "loss_scale" && doc.loss_scale == 0)
    return "the loss scale was 0 when it was first read, by " + where;
  if (c.origin != "op")
    return (c.tensor_name == c.origin ? "the " + c.origin
                                      : c.origin + " " + (c.tensor_name.empty() ? "tensor" : c.tensor_name)) +
           (part.empty() ? "" : " (" + part + ")") + " held " + what + " when it was first read, by " + where;
  if (c.value == "silent") return where + " overflowed and a later op hid it";
  if (!arrived_by(doc).empty()) return what + " arrived by " + where + "; what this process gave was finite";
  if (op->flags & kOpOpaque) return where + " gave " + what + "; what runs inside it is not on record";
  return where + " made " + what + " out of " +
         (!(op->flags & kOpBirth)                ? "infinities that were there"
          : bad_constants(doc, OpId{c.op}).any() ? "finite tensors and a number that is not finite"
                                                 : "finite inputs");
}

}  // namespace nanquest
