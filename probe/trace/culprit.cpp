#include "probe/trace/culprit.h"

#include <algorithm>

#include "probe/trace/collectives.h"
#include "probe/trace/hidden.h"
#include "probe/trace/walk.h"

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

struct Candidate {
  int rank = 2;  ///< blame order of design §5: state, input, op
  OpId op;       ///< the op to name
  TensorId row;  ///< bad outside value, or none
};

Candidate candidate_of(const TraceGraph& graph, const Walk& walk, const Root& root) {
  if (is_intended(graph, root)) return {2, first_harmful(graph, walk.path_to_harm(root.op), !root.row), {}};
  if (!root.row) return {2, root.op, {}};
  const SlotOrigin origin = get(graph.doc(), graph.slot(root.row)).origin;
  return {is_state(origin) ? 0 : origin == SlotOrigin::input ? 1 : 2, root.op, root.row};
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

bool find_culprit(SnapshotDoc& doc) {
  Culprit& c = doc.culprit = {};
  const TraceGraph graph(doc);
  const Walk walk(graph);
  OpId silent;
  for (const OpId op : graph.ops()) {
    if ((graph.op(op).flags & kOpBirth) && !walk.reached(op)) c.suppressed.push_back(op.row());
    if (!silent && hides_overflow(graph, op)) silent = op;
  }
  if (!walk.roots().empty()) {
    std::vector<Candidate> candidates;
    for (const Root& root : walk.roots()) candidates.push_back(candidate_of(graph, walk, root));
    fill(c, graph, walk,
         *std::min_element(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
           return a.rank != b.rank ? a.rank < b.rank : a.op < b.op;
         }));
    return true;
  }
  // A range overflow that later ops hide counts only where nothing worse happened (design §5).
  if (!silent) return false;
  fill(c, graph, walk, {2, silent, {}});
  c.value = "silent";
  std::erase(c.suppressed, silent.row());
  return true;
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
