#include "probe/trace/culprit.h"

#include <algorithm>

#include "probe/trace/collectives.h"
#include "probe/trace/hidden.h"

namespace nanquest {
namespace {

bool is_state(SlotOrigin origin) {
  return origin == SlotOrigin::parameter || origin == SlotOrigin::buffer ||
         origin == SlotOrigin::optimizer_state;
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

void fill_from_row(Culprit& c, const TraceGraph& graph, TensorId row) {
  const StatsRow* s = graph.stats(row);
  if (!s) return;
  c.value = value_name({s->nan, s->pos_inf, s->neg_inf});
  c.count = s->non_finite();
  if (s->first_bad >= 0) c.first = index_of(graph.tensor(row), s->first_bad);
}

Candidate candidate_of(const TraceGraph& graph, const Walk& walk, const Root& root) {
  using Kind = Candidate::Kind;
  if (is_intended(graph, root))
    return {Kind::op, first_harmful(graph, walk.path_to_harm(root.op), !root.row), {}};
  if (!root.row) return {Kind::op, root.op, {}};
  const SlotOrigin origin = get(graph.doc(), graph.slot(root.row)).origin;
  const Kind kind = is_state(origin) ? Kind::state : origin == SlotOrigin::input ? Kind::input : Kind::op;
  return {kind, root.op, root.row};
}

/// The first of what the op wrote that is bad, none if it is all good.
TensorId first_bad_written(const TraceGraph& graph, OpId op) {
  const auto written = graph.written(op);
  const auto found =
      std::find_if(written.begin(), written.end(), [&](TensorId row) { return graph.bad(row); });
  return found == written.end() ? TensorId{} : *found;
}

void fill(Culprit& c, const TraceGraph& graph, const Walk& walk, const Candidate& best) {
  c.op = best.op.row();
  c.phase = graph.op(best.op).phase;
  if (best.row) {
    const Slot& slot = get(graph.doc(), graph.slot(best.row));
    c.origin = origin_name(slot.origin);
    c.tensor_name = slot.name;
    if (c.origin != "op") c.phase = Phase::input;
    fill_from_row(c, graph, best.row);
  } else {
    TensorId first = first_bad_written(graph, best.op);
    // What a collective received may be seen only where it was handed over.
    if (const OpId after = walk.next(best.op); !first && after) first = first_bad_written(graph, after);
    fill_from_row(c, graph, first);
  }
  for (const OpId op : walk.path_to_harm(best.op)) c.lineage.push_back(op.row());
}

}  // namespace

std::vector<Candidate> candidates_for_blame(const TraceGraph& graph, const Walk& walk) {
  std::vector<Candidate> all;
  for (const Root& root : walk.roots()) all.push_back(candidate_of(graph, walk, root));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool find_culprit(SnapshotDoc& doc) {
  Culprit& c = doc.culprit = {};
  const TraceGraph graph(doc);
  const Walk walk(graph);
  OpId silent;
  for (const OpId op : graph.ops()) {
    if ((graph.op(op).flags & kOpBirth) && !walk.reached(op)) c.suppressed.push_back(op.row());
    if (!silent && hides_overflow(graph, op)) silent = op;
  }
  const std::vector<Candidate> candidates = candidates_for_blame(graph, walk);
  if (!candidates.empty()) {
    fill(c, graph, walk, candidates.front());
    return true;
  }
  // A range overflow that later ops hide counts only where nothing worse happened (design §5).
  if (!silent) return false;
  fill(c, graph, walk, {Candidate::Kind::op, silent, {}});
  c.value = "silent";
  std::erase(c.suppressed, silent.row());
  return true;
}

void name_culprit(SnapshotDoc& doc, OpId op, TensorId row) {
  const std::vector<std::int32_t> suppressed = std::move(doc.culprit.suppressed);
  doc.culprit = {};
  const TraceGraph graph(doc);
  fill(doc.culprit, graph, Walk(graph), {Candidate::Kind::op, op, row});
  doc.culprit.suppressed = suppressed;
}

std::string describe_culprit(const SnapshotDoc& doc) {
  const Culprit& c = doc.culprit;
  const OpRow* op = find_row(doc, OpId{c.op});
  if (!op) return "no harmful non-finite value was found in the recorded step";
  std::string where = op->name;
  if (const ModuleRow* module = find_row(doc, ModuleId{op->module})) where += " in " + module->path;
  where.append(" (")
      .append(phase_name(op->phase))
      .append(op->node.empty() ? "" : ", " + op->node)
      .append(")");
  const std::string what =
      std::to_string(c.count) + (c.value == "mixed" ? " non-finite values" : " x " + c.value);
  if (c.origin != "op")
    return (c.tensor_name == c.origin ? "the " + c.origin
                                      : c.origin + " " + (c.tensor_name.empty() ? "tensor" : c.tensor_name)) +
           " held " + what + " before any op ran; first read by " + where;
  if (c.value == "silent") return where + " overflowed and a later op hid it";
  if (is_collective(op->name)) return what + " arrived by " + where + "; what this process gave was finite";
  return where + " made " + what + " out of " +
         ((op->flags & kOpBirth) ? "finite inputs" : "intended infinities");
}

}  // namespace nanquest
