#include "probe/trace/flow.h"

#include <algorithm>
#include <string_view>

namespace nanquest {
namespace {

/// Where a batch norm has its running statistics: the first of two arguments; below 0 for other operators.
std::int32_t first_statistic(std::string_view op) {
  if (op.find("batch_norm") == std::string_view::npos) return -1;
  return op == "aten::batch_norm_update_stats" ? 1 : 3;
}

/// Those that have a switch for evaluation have no other truth value before it.
bool trains(const TraceGraph& graph, OpId op) {
  for (const ArgId id : tokens_of(graph.doc(), graph.op(op)))
    if (const ArgRow& token = get(graph.doc(), id); token.kind == ArgKind::boolean) return token.integer != 0;
  return true;
}

/// `passes`: whether what is written to this row is followed.
template <class Passes>
SlotSet reached(const TraceGraph& graph, const std::vector<SlotId>& from, OpId first, const Passes& passes) {
  SlotSet found(graph.doc().slots.size(), false);
  for (const SlotId slot : from) found[slot] = true;
  for (const OpId op : IdRange<OpRow>(first, graph.end())) {
    const auto reads = graph.reads(op);
    const bool takes = std::any_of(reads.begin(), reads.end(), [&](TensorId row) {
      return found[graph.slot(row)] && !only_updates(graph, op, row);
    });
    if (!takes) continue;
    for (const TensorId row : graph.written(op))
      if (const SlotId slot = row ? graph.slot(row) : SlotId{}; slot && passes(row)) found[slot] = true;
  }
  return found;
}

}  // namespace

bool only_updates(const TraceGraph& graph, OpId op, TensorId row) {
  const std::int32_t first = first_statistic(graph.op(op).name);
  if (first < 0) return false;
  const auto given = graph.arguments(op);
  return std::any_of(given.begin(), given.end(),
                     [&](const TraceGraph::Argument& argument) {
                       return argument.row == row &&
                              (argument.position == first || argument.position == first + 1);
                     }) &&
         trains(graph, op);
}

bool old_value_used(const TraceGraph& graph, SlotId slot) {
  const auto& reads = graph.reads(slot);
  return std::any_of(reads.begin(), reads.end(), [&](const TraceGraph::Read& read) {
    return !computes_nothing(graph.op(read.op)) && !graph.producer(read.row, read.op);
  });
}

SlotSet reached_by(const TraceGraph& graph, const std::vector<SlotId>& from, OpId first) {
  return reached(graph, from, first, [](TensorId) { return true; });
}

SlotSet reached_in_floats(const TraceGraph& graph, const std::vector<SlotId>& from, OpId first) {
  return reached(graph, from, first, [&](TensorId row) { return dtype_has_nan(graph.tensor(row).dtype); });
}

}  // namespace nanquest
