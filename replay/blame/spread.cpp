#include "replay/blame/spread.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "replay/blame/suspects.h"

namespace nanquest {
namespace {

/// Number of elements that the op wrote, and how many of them are infinite.
std::pair<std::uint64_t, std::uint64_t> sizes_of(const TraceGraph& graph, OpId op) {
  std::uint64_t elements = 0, infinite = 0;
  for (const TensorId row : graph.written(op))
    if (const StatsRow* s = graph.stats(row)) elements += s->count, infinite += s->pos_inf + s->neg_inf;
  return {elements, infinite};
}

/// A tensor of whole numbers selects the elements it reads: a class, a row.
bool picks_by_index(const TraceGraph& graph, OpId op) {
  const auto arguments = graph.arguments(op);
  return std::any_of(arguments.begin(), arguments.end(), [&](const TraceGraph::Argument& a) {
    const DType type = a.row ? graph.tensor(a.row).dtype : DType::float32;
    return type == DType::int64 || type == DType::int32;
  });
}

}  // namespace

std::vector<OpId> handed_on_by(const TraceGraph& graph, OpId root) {
  const auto there = sizes_of(graph, root);
  std::vector<OpId> found;
  for (OpId op{root.row() + 1}; op.index() < graph.doc().ops.size(); op = OpId{op.row() + 1}) {
    if (graph.op(op).phase != graph.op(root).phase) break;
    const auto here = sizes_of(graph, op);
    if (here.second == 0 || !ancestors(graph, op)[root]) continue;
    if (here == there) {
      found.push_back(op);
      continue;
    }
    if (picks_by_index(graph, op)) found.clear();
    break;
  }
  return found;
}

}  // namespace nanquest
