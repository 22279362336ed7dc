#include "replay/rewind/gradients.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <set>
#include <string>

namespace nanquest {
namespace {

using Sizes = std::multiset<std::vector<std::int64_t>>;

Error unsupported(const TapeStep& step, const std::string& what) {
  return {ErrorCode::unsupported, "at step " + std::to_string(step.step) + " " + what, ""};
}

/// True for a fused optimizer that was given a loss scale to remove.
bool unscales(const TraceGraph& graph, OpId id) {
  const OpRow& op = graph.op(id);
  const auto schema = c10::Dispatcher::singleton().findSchema({op.name, op.overload});
  if (!schema) return false;
  const auto position = schema->schema().argumentIndexWithName("grad_scale");
  if (!position) return false;
  const auto arguments = graph.arguments(id);
  return std::any_of(arguments.begin(), arguments.end(), [&](const TraceGraph::Argument& argument) {
    return argument.position == *position && graph.slot(argument.row);
  });
}

std::int64_t count(const TensorRow& row) {
  std::int64_t all = 1;
  for (const std::int64_t size : row.sizes) all *= size;
  return all;
}

}  // namespace

Result<std::vector<TapeGradient>> gradients_of(const TraceGraph& graph, const StepSpan& span,
                                               const TapeStep& step) {
  std::vector<TapeGradient> found;
  Sizes of_weights, of_gradients;
  std::set<std::int32_t> weights, gradients;  // slots
  const auto origin = [&](SlotId slot) {
    return graph.doc().slots[static_cast<std::size_t>(slot.row())].origin;
  };
  for (std::int32_t i = step.gate; i < step.end; ++i) {
    if (unscales(graph, OpId{i})) return unsupported(step, "the optimizer takes the loss scale off itself");
    for (const TensorId row : graph.written(OpId{i}))
      if (const SlotId slot = graph.slot(row);
          slot && origin(slot) == SlotOrigin::parameter && weights.insert(slot.row()).second)
        of_weights.insert(graph.tensor(row).sizes);
  }
  for (std::int32_t i = step.gate; i < step.end; ++i)
    for (const TraceGraph::Argument& argument : graph.arguments(OpId{i})) {
      const SlotId slot = graph.slot(argument.row);
      if (!slot || weights.contains(slot.row()) || origin(slot) == SlotOrigin::optimizer_state) continue;
      const TensorRow& read = graph.tensor(argument.row);
      if (!dtype_is_float(read.dtype) || !of_weights.contains(read.sizes)) continue;
      const OpId maker = graph.producer(argument.row, OpId{step.gate});
      if (!maker || maker.row() < span.begin || !gradients.insert(slot.row()).second) continue;
      const auto written = graph.written(maker);
      const auto whole = std::find_if(written.begin(), written.end(), [&](TensorId row) {
        return graph.slot(row) == slot && count(graph.tensor(row)) == count(read);
      });
      if (whole == written.end()) return unsupported(step, "gradients are parts of larger memory");
      found.push_back({maker.row(), static_cast<std::int32_t>(whole - written.begin())});
      of_gradients.insert(read.sizes);
    }
  if (of_gradients != of_weights)
    return unsupported(step, "the update's gradients can't be told from other tensors");
  return found;
}

}  // namespace nanquest
