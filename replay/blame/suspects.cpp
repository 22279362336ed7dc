#include "replay/blame/suspects.h"

#include <algorithm>
#include <tuple>

#include "probe/trace/births.h"

namespace nanquest {
namespace {

/// At most this many hidden overflows are looked at: the first ones.
constexpr std::size_t kMaxHidden = 8;

BadKinds kinds_of(const BadCounts& counts) {
  return {counts.nan > 0, counts.pos_inf + counts.neg_inf > 0};
}

class Back {
 public:
  explicit Back(const TraceGraph& graph) : graph_(graph), seen_(graph.doc().ops.size(), false) {}

  void from(TensorId row, OpId before) {
    graph_.each_write_behind(row, before, [&](const TraceGraph::Write& write) {
      visit(write.op);
      return false;
    });
    drain();
  }
  void from(OpId op) {
    visit(op);
    drain();
  }
  PerRow<OpRow, bool> take() { return std::move(seen_); }

 private:
  void visit(OpId op) {
    if (seen_[op]) return;
    seen_[op] = true;
    open_.push_back(op);
  }
  void drain() {
    while (!open_.empty()) {
      const OpId op = open_.back();
      open_.pop_back();
      for (const TensorId row : graph_.reads(op))
        graph_.each_write_behind(row, op, [&](const TraceGraph::Write& write) {
          visit(write.op);
          return false;
        });
    }
  }

  const TraceGraph& graph_;
  PerRow<OpRow, bool> seen_;
  std::vector<OpId> open_;
};

void add_outside(const TraceGraph& graph, const Walk& walk, std::vector<Suspect>& found) {
  for (const Root& root : walk.roots()) {
    if (!root.row) continue;
    const StatsRow* s = graph.stats(root.row);
    if (!s) continue;
    const SlotId slot = graph.slot(root.row);
    Suspect suspect{root.op, root.row, kinds_of({s->nan, s->pos_inf, s->neg_inf})};
    // The path to harm may begin at a later reader. The op that is named is the first that looks at values of
    // the same origin: there when the step began, or written by the host.
    const OpId written_by = graph.producer(root.row, root.op);
    for (const TraceGraph::Read& read : graph.reads(slot))
      if (read.op < suspect.op && !computes_nothing(graph.op(read.op)) && graph.bad(read.row) &&
          graph.producer(read.row, read.op) == written_by)
        suspect.op = read.op, suspect.row = read.row;
    const bool known = std::any_of(found.begin(), found.end(), [&](const Suspect& other) {
      return graph.slot(other.row) == slot && same_view(graph.tensor(other.row), graph.tensor(root.row));
    });
    if (!known) found.push_back(suspect);
  }
}

void add_made(const TraceGraph& graph, const Walk& walk, std::vector<Suspect>& found) {
  for (const OpId op : graph.ops()) {
    if (!walk.reached(op)) continue;
    const BadKinds in = kinds_of(graph.read_counts(op)), out = kinds_of(graph.written_counts(op));
    const BadKinds made{out.nan && !in.nan, out.infinite && !in.any()};
    if (made.any()) found.push_back({op, {}, made});
  }
}

void add_hidden(const TraceGraph& graph, const Walk& walk, std::vector<Suspect>& found) {
  std::vector<OpId> births;
  for (const OpId op : graph.ops())
    if ((graph.op(op).flags & kOpBirthFiniteAbove) && !walk.reached(op)) births.push_back(op);
  if (births.empty()) return;
  Back back(graph);
  for (const Suspect& suspect : found) back.from(suspect.op);
  const PerRow<OpRow, bool> before = back.take();
  std::size_t count = 0;
  for (const OpId op : births)
    if (before[op] && count++ < kMaxHidden)
      found.push_back({op, {}, kinds_of(graph.written_counts(op)), /*hidden=*/true});
}

}  // namespace

PerRow<OpRow, bool> ancestors(const TraceGraph& graph, TensorId row) {
  Back back(graph);
  if (graph.slot(row)) back.from(row, graph.end());
  return back.take();
}

PerRow<OpRow, bool> ancestors(const TraceGraph& graph, OpId op) {
  Back back(graph);
  back.from(op);
  return back.take();
}

std::vector<Suspect> makers_in(const TraceGraph& graph, const RunResult& run) {
  const auto counts_of = [&](OpId op) {
    BadCounts counts;
    if (op.index() < run.ops.size())
      for (const StatsRow& s : run.ops[op.index()].written) counts += s;
    return counts;
  };
  std::vector<Suspect> found;
  for (const OpId op : graph.ops()) {
    const BadKinds out = kinds_of(counts_of(op));
    if (!out.any() || !can_be_birth(graph.op(op).flags)) continue;
    BadKinds in;
    for (const TensorId row : graph.reads(op)) {
      const OpId maker = graph.producer(row, op);
      const StatsRow* outside = graph.stats(row);
      const BadKinds one = maker     ? kinds_of(counts_of(maker))
                           : outside ? kinds_of({outside->nan, outside->pos_inf, outside->neg_inf})
                                     : BadKinds{};
      in = {in.nan || one.nan, in.infinite || one.infinite};
    }
    const BadKinds made{out.nan && !in.nan, out.infinite && !in.any()};
    if (made.any()) found.push_back({op, {}, made});
  }
  return found;
}

std::vector<Suspect> find_suspects(const TraceGraph& graph, const Walk& walk) {
  std::vector<Suspect> found;
  add_outside(graph, walk, found);
  add_made(graph, walk, found);
  add_hidden(graph, walk, found);
  sort_by_time(graph, found);
  return found;
}

void sort_by_time(const TraceGraph& graph, std::vector<Suspect>& suspects) {
  const auto when = [&](const Suspect& s) {
    const SlotOrigin origin = s.row ? get(graph.doc(), graph.slot(s.row)).origin : SlotOrigin::produced;
    const bool before = origin != SlotOrigin::produced && origin != SlotOrigin::external;
    return std::tuple(!before, s.op, !s.row);
  };
  std::stable_sort(suspects.begin(), suspects.end(),
                   [&](const Suspect& a, const Suspect& b) { return when(a) < when(b); });
}

}  // namespace nanquest
