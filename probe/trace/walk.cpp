#include "probe/trace/walk.h"

#include <deque>

#include "probe/trace/collectives.h"

namespace nanquest {
namespace {

/// The collective whose result `reader` copies out of memory that host code filled: a backend that receives
/// into a buffer of its own (gloo's gathers) hands it over with ordinary copies when somebody waits. kNone if
/// it is none.
std::int32_t collective_behind(const TraceGraph& graph, std::int32_t host_write, std::int32_t reader) {
  std::int32_t found = kNone;
  graph.each_written(reader, [&](std::int32_t copied) {
    for (std::int32_t i = host_write - 1; i >= 0 && found == kNone; --i)
      if (is_collective(graph.op(i).name))
        graph.each_written(i, [&](std::int32_t row) {
          if (graph.tensor(row).slot != kNone && graph.tensor(row).slot == graph.tensor(copied).slot)
            found = i;
        });
  });
  return found;
}

}  // namespace

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
        std::int32_t writer = graph.bad_writer(graph.tensor(row).slot, index);
        if (writer != kNone && (graph.op(writer).flags & kOpHostWrite))
          if (const std::int32_t collective = collective_behind(graph, writer, index); collective != kNone)
            writer = collective;
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

bool is_intended(const SnapshotDoc& doc, const TraceGraph& graph, const Root& root) {
  if (root.row != kNone) {
    const StatsRow* s = graph.stats(root.row);
    const SlotOrigin origin = graph.slot(graph.tensor(root.row).slot).origin;
    return s && s->nan == 0 && s->pos_inf == 0 &&
           (origin == SlotOrigin::external || origin == SlotOrigin::input || origin == SlotOrigin::buffer);
  }
  const OpRow& op = graph.op(root.op);
  if (op.flags & (kOpBirthFiniteAbove | kOpHostWrite))
    return (op.flags & kOpHostWrite) && graph.written_counts(root.op).nan == 0;
  for (std::int32_t i = 0; i < op.arg_count; ++i) {
    const ArgRow& a = doc.args[static_cast<std::size_t>(op.first_arg + i)];
    if (a.kind == ArgKind::real && (a.real > 1.7976931348623157e308 || a.real < -1.7976931348623157e308))
      return true;
  }
  return false;
}

std::vector<std::int32_t> path_to_harm(const Walk& walk, std::int32_t from) {
  std::vector<std::int32_t> path;
  for (std::int32_t i = from; i != kNone && path.size() <= walk.next.size(); i = walk.next.at(i))
    path.push_back(i);
  return path;
}

std::int32_t first_harmful(const TraceGraph& graph, const std::vector<std::int32_t>& path,
                           bool source_is_op) {
  for (std::size_t i = source_is_op ? 1 : 0; i < path.size(); ++i) {
    const auto in = graph.read_counts(path[i]);
    const auto out = graph.written_counts(path[i]);
    if (in.nan == 0 && out.nan > 0) return path[i];
    if (in.pos_inf == 0 && out.pos_inf > 0) return path[i];
  }
  return path.back();
}

}  // namespace nanquest
