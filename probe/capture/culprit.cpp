#include <algorithm>
#include <deque>
#include <string_view>
#include <unordered_map>

#include "probe/capture/record.h"

namespace nanquest {
namespace {

/// Who wrote which slot, and what: the trace as a graph, in the order of execution.
class TraceGraph {
 public:
  explicit TraceGraph(const SnapshotDoc& doc) : doc_(doc), writers_(doc.slots.size()) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(doc.ops.size()); ++i)
      each_written(i, [&](std::int32_t row) {
        const std::int32_t slot = tensor(row).slot;
        if (slot != kNone) writers_[static_cast<std::size_t>(slot)].push_back({i, bad(row)});
      });
  }

  const OpRow& op(std::int32_t i) const { return doc_.ops[static_cast<std::size_t>(i)]; }
  const TensorRow& tensor(std::int32_t row) const { return doc_.tensors[static_cast<std::size_t>(row)]; }
  const Slot& slot(std::int32_t s) const { return doc_.slots[static_cast<std::size_t>(s)]; }

  const StatsRow* stats(std::int32_t row) const {
    if (row == kNone) return nullptr;
    const std::int32_t s = tensor(row).stats;
    return s == kNone ? nullptr : &doc_.stats[static_cast<std::size_t>(s)];
  }
  bool bad(std::int32_t row) const {
    const StatsRow* s = stats(row);
    return s && s->non_finite() > 0;
  }

  template <class F>
  void each_argument(std::int32_t index, F&& f) const {
    const OpRow& o = op(index);
    for (std::int32_t i = 0; i < o.arg_count; ++i) {
      const ArgRow& a = doc_.args[static_cast<std::size_t>(o.first_arg + i)];
      if (a.kind == ArgKind::tensor && a.tensor != kNone) f(a.tensor);
    }
  }
  template <class F>
  void each_written(std::int32_t index, F&& f) const {
    const OpRow& o = op(index);
    for (std::int32_t i = 0; i < o.written_count; ++i) f(doc_.written[static_cast<std::size_t>(o.first_written + i)]);
  }

  /// The op before `before` whose bad values `slot` holds; kNone if they were there from the start.
  std::int32_t bad_writer(std::int32_t slot, std::int32_t before) const {
    const auto& list = writers_[static_cast<std::size_t>(slot)];
    for (auto it = list.rbegin(); it != list.rend(); ++it)
      if (it->op < before && it->bad) return it->op;
    return kNone;
  }

  bool writes_bad(std::int32_t index) const {
    bool any = false;
    each_written(index, [&](std::int32_t row) { any = any || bad(row); });
    return any;
  }

  struct Counts {
    std::uint64_t nan = 0, pos_inf = 0, neg_inf = 0;
  };
  Counts written_counts(std::int32_t index) const {
    Counts c;
    each_written(index, [&](std::int32_t row) { add(c, row); });
    return c;
  }
  Counts read_counts(std::int32_t index) const {
    Counts c;
    each_argument(index, [&](std::int32_t row) { add(c, row); });
    return c;
  }

 private:
  struct Writer {
    std::int32_t op;
    bool bad;
  };
  void add(Counts& c, std::int32_t row) const {
    if (const StatsRow* s = stats(row)) {
      c.nan += s->nan;
      c.pos_inf += s->pos_inf;
      c.neg_inf += s->neg_inf;
    }
  }
  const SnapshotDoc& doc_;
  std::vector<std::vector<Writer>> writers_;
};

/// Where bad values that did harm came from.
struct Root {
  std::int32_t op = kNone;    ///< the birth, or the first op that read a bad outside value
  std::int32_t row = kNone;   ///< the bad outside value (a tensor row), kNone for a birth
};

/// Walks back from the harm through bad values only; `next` leads from each op towards the harm.
struct Walk {
  std::vector<Root> roots;
  std::unordered_map<std::int32_t, std::int32_t> next;
};

Walk walk_back(const SnapshotDoc& doc, const TraceGraph& graph) {
  Walk walk;
  std::deque<std::int32_t> queue;
  const auto visit = [&](std::int32_t index, std::int32_t towards) {
    if (walk.next.emplace(index, towards).second) queue.push_back(index);
  };
  const auto end = static_cast<std::int32_t>(doc.ops.size());
  const auto sink = [&](std::int32_t row) {
    if (row == kNone || !graph.bad(row) || graph.tensor(row).slot == kNone) return;
    const std::int32_t writer = graph.bad_writer(graph.tensor(row).slot, end);
    if (writer != kNone) visit(writer, kNone);
  };
  const auto drain = [&] {
    while (!queue.empty()) {
      const std::int32_t index = queue.front();
      queue.pop_front();
      bool inherited = false;
      graph.each_argument(index, [&](std::int32_t row) {
        if (!graph.bad(row) || graph.tensor(row).slot == kNone) return;
        inherited = true;
        const std::int32_t writer = graph.bad_writer(graph.tensor(row).slot, index);
        if (writer == kNone)
          walk.roots.push_back({index, row});
        else
          visit(writer, index);
      });
      if (!inherited) walk.roots.push_back({index, kNone});
    }
  };
  // The loss first: a way that leads there says more than a shorter one to some gradient.
  sink(doc.loss);
  drain();
  for (const std::int32_t row : doc.gradients) sink(row);
  for (std::int32_t i = 0; i < end; ++i) {
    if (graph.op(i).phase != Phase::optimizer) continue;
    graph.each_written(i, [&](std::int32_t row) {
      const std::int32_t slot = graph.tensor(row).slot;
      if (slot == kNone || !graph.bad(row)) return;
      const SlotOrigin origin = graph.slot(slot).origin;
      if (origin == SlotOrigin::parameter || origin == SlotOrigin::optimizer_state) visit(i, kNone);
    });
  }
  drain();
  return walk;
}

bool is_state(SlotOrigin origin) {
  return origin == SlotOrigin::parameter || origin == SlotOrigin::buffer || origin == SlotOrigin::optimizer_state;
}

/// Infinities that somebody wrote down: a constant argument, or a mask of -inf handed in from outside.
bool is_intended(const SnapshotDoc& doc, const TraceGraph& graph, const Root& root) {
  if (root.row != kNone) {
    const StatsRow* s = graph.stats(root.row);
    const SlotOrigin origin = graph.slot(graph.tensor(root.row).slot).origin;
    return s && s->nan == 0 && s->pos_inf == 0 &&
           (origin == SlotOrigin::external || origin == SlotOrigin::input || origin == SlotOrigin::buffer);
  }
  const OpRow& op = graph.op(root.op);
  if (op.flags & (kOpBirthFiniteAbove | kOpHostWrite)) return (op.flags & kOpHostWrite) && graph.written_counts(root.op).nan == 0;
  for (std::int32_t i = 0; i < op.arg_count; ++i) {
    const ArgRow& a = doc.args[static_cast<std::size_t>(op.first_arg + i)];
    if (a.kind == ArgKind::real && (a.real > 1.7976931348623157e308 || a.real < -1.7976931348623157e308)) return true;
  }
  return false;
}

std::vector<std::int32_t> path_to_harm(const Walk& walk, std::int32_t from) {
  std::vector<std::int32_t> path;
  for (std::int32_t i = from; i != kNone && path.size() <= walk.next.size(); i = walk.next.at(i)) path.push_back(i);
  return path;
}

/// An infinity was meant: the op that turned it into harm, looking from its source towards the harm.
std::int32_t first_harmful(const TraceGraph& graph, const std::vector<std::int32_t>& path, bool source_is_op) {
  for (std::size_t i = source_is_op ? 1 : 0; i < path.size(); ++i) {
    const auto in = graph.read_counts(path[i]);
    const auto out = graph.written_counts(path[i]);
    if (in.nan == 0 && out.nan > 0) return path[i];
    if (in.pos_inf == 0 && out.pos_inf > 0) return path[i];
  }
  return path.back();
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
    case SlotOrigin::input: return "input";
    case SlotOrigin::parameter: return "parameter";
    case SlotOrigin::buffer: return "buffer";
    case SlotOrigin::optimizer_state: return "optimizer_state";
    case SlotOrigin::loss_scale: return "loss_scale";
    default: return "op";
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
  int rank;            ///< blame order of design §5: state, input, op
  std::int32_t op;     ///< the op to name
  std::int32_t row;    ///< bad outside value, or kNone
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
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(doc.ops.size()); ++i) {
    if (!(graph.op(i).flags & kOpBirthFiniteAbove)) continue;
    // A large negative number that becomes -inf on its way into a softmax was meant to vanish there.
    if (graph.written_counts(i).pos_inf > 0) return i;
  }
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
    graph.each_written(best.op, [&](std::int32_t row) {
      if (first == kNone && graph.bad(row)) first = row;
    });
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
    if ((doc.ops[static_cast<std::size_t>(i)].flags & kOpBirth) && !walk.next.count(i)) doc.culprit.suppressed.push_back(i);

  if (!candidates.empty()) {
    const auto best = std::min_element(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
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
  where += std::string(" (") + phases[static_cast<int>(op.phase)] + (op.node.empty() ? "" : ", " + op.node) + ")";
  const std::string what = std::to_string(c.count) + (c.value == "mixed" ? " non-finite values" : " x " + c.value);
  if (c.origin != "op")
    return c.origin + " " + (c.tensor_name.empty() ? "tensor" : c.tensor_name) + " held " + what + " before any op ran; first read by " + where;
  if (c.value == "silent") return where + " overflowed and a later op hid it";
  return where + " made " + what + " out of " + ((op.flags & kOpBirth) ? "finite inputs" : "intended infinities");
}

}  // namespace nanquest
