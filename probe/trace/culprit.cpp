#include "probe/trace/culprit.h"

#include <algorithm>
#include <string>

#include "probe/trace/collectives.h"
#include "probe/trace/hidden.h"
#include "probe/trace/walk.h"

namespace nanquest {
namespace {

bool is_state(SlotOrigin origin) {
  return origin == SlotOrigin::parameter || origin == SlotOrigin::buffer ||
         origin == SlotOrigin::optimizer_state;
}

std::string value_word(const TraceGraph::Counts& c) {
  const int kinds = (c.nan > 0) + (c.pos_inf > 0) + (c.neg_inf > 0);
  if (kinds > 1) return "mixed";
  return c.nan ? "nan" : (c.pos_inf ? "+inf" : (c.neg_inf ? "-inf" : "silent"));
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

std::string origin_word(SlotOrigin origin) {
  switch (origin) {
    case SlotOrigin::input:
      return "input";
    case SlotOrigin::parameter:
      return "parameter";
    case SlotOrigin::buffer:
      return "buffer";
    case SlotOrigin::optimizer_state:
      return "optimizer_state";
    case SlotOrigin::loss_scale:
      return "loss_scale";
    default:
      return "op";
  }
}

void fill_from_row(Culprit& c, const TraceGraph& graph, std::int32_t row) {
  const StatsRow* s = graph.stats(row);
  if (!s) return;
  c.value = value_word({s->nan, s->pos_inf, s->neg_inf});
  c.count = s->non_finite();
  if (s->first_bad >= 0) c.first = index_of(graph.tensor(row), s->first_bad);
}

struct Candidate {
  int rank;          ///< blame order of design §5: state, input, op
  std::int32_t op;   ///< the op to name
  std::int32_t row;  ///< bad outside value, or kNone
};

Candidate candidate_of(const SnapshotDoc& doc, const TraceGraph& graph, const Walk& walk, const Root& root) {
  if (is_intended(doc, graph, root))
    return {2, first_harmful(graph, path_to_harm(walk, root.op), root.row == kNone), kNone};
  if (root.row == kNone) return {2, root.op, kNone};
  const SlotOrigin origin = graph.slot(graph.tensor(root.row).slot).origin;
  if (is_state(origin)) return {0, root.op, root.row};
  return {origin == SlotOrigin::input ? 1 : 2, root.op, root.row};
}

/// A range overflow that later ops hide: reported only when nothing worse happened (design §5).
std::int32_t silent_birth(const SnapshotDoc& doc, const TraceGraph& graph) {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(doc.ops.size()); ++i)
    if (hides_overflow(graph, i)) return i;
  return kNone;
}

void fill(SnapshotDoc& doc, const TraceGraph& graph, const Walk& walk, const Candidate& best) {
  Culprit& c = doc.culprit;
  c.op = best.op;
  c.phase = graph.op(best.op).phase;
  if (best.row != kNone) {
    const Slot& slot = graph.slot(graph.tensor(best.row).slot);
    c.origin = origin_word(slot.origin);
    c.tensor_name = slot.name;
    if (c.origin != "op") c.phase = Phase::input;
    fill_from_row(c, graph, best.row);
  } else {
    std::int32_t first = kNone;
    const auto look_at = [&](std::int32_t op) {
      graph.each_written(op, [&](std::int32_t row) {
        if (first == kNone && graph.bad(row)) first = row;
      });
    };
    look_at(best.op);
    // What a collective received may be seen only where it was handed over.
    if (const auto after = walk.next.find(best.op);
        first == kNone && after != walk.next.end() && after->second != kNone)
      look_at(after->second);
    if (first != kNone) fill_from_row(c, graph, first);
  }
  c.lineage = path_to_harm(walk, best.op);
}

}  // namespace

bool find_culprit(SnapshotDoc& doc) {
  doc.culprit = {};
  const TraceGraph graph(doc);
  const Walk walk = walk_back(doc, graph);
  std::vector<Candidate> candidates;
  for (const Root& root : walk.roots) candidates.push_back(candidate_of(doc, graph, walk, root));
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(doc.ops.size()); ++i)
    if ((doc.ops[static_cast<std::size_t>(i)].flags & kOpBirth) && !walk.next.count(i))
      doc.culprit.suppressed.push_back(i);

  if (!candidates.empty()) {
    const auto best =
        std::min_element(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
          return a.rank != b.rank ? a.rank < b.rank : a.op < b.op;
        });
    fill(doc, graph, walk, *best);
    return true;
  }
  const std::int32_t silent = silent_birth(doc, graph);
  if (silent == kNone) return false;
  fill(doc, graph, Walk{{}, {{silent, kNone}}}, {2, silent, kNone});
  doc.culprit.value = "silent";
  std::erase(doc.culprit.suppressed, silent);
  return true;
}

std::string describe_culprit(const SnapshotDoc& doc) {
  const Culprit& c = doc.culprit;
  if (c.op == kNone) return "no harmful non-finite value was found in the recorded step";
  const OpRow& op = doc.ops[static_cast<std::size_t>(c.op)];
  constexpr const char* phases[] = {"input", "forward", "backward", "optimizer"};
  std::string where = op.name;
  if (op.module != kNone) where += " in " + doc.modules[static_cast<std::size_t>(op.module)].path;
  where +=
      std::string(" (") + phases[static_cast<int>(op.phase)] + (op.node.empty() ? "" : ", " + op.node) + ")";
  const std::string what =
      std::to_string(c.count) + (c.value == "mixed" ? " non-finite values" : " x " + c.value);
  if (c.origin != "op")
    return (c.tensor_name == c.origin ? "the " + c.origin
                                      : c.origin + " " + (c.tensor_name.empty() ? "tensor" : c.tensor_name)) +
           " held " + what + " before any op ran; first read by " + where;
  if (c.value == "silent") return where + " overflowed and a later op hid it";
  if (is_collective(op.name)) return what + " arrived by " + where + "; what this process gave was finite";
  return where + " made " + what + " out of " +
         ((op.flags & kOpBirth) ? "finite inputs" : "intended infinities");
}

}  // namespace nanquest
