#include "probe/trace/origins.h"

#include <algorithm>
#include <string_view>

namespace nanquest {
namespace {

constexpr std::string_view kAccumulates = "AccumulateGrad";

/// Reads of the slot's values that no op of the step had written.
template <class F>
bool any_first_read(const TraceGraph& graph, SlotId slot, F&& f) {
  const auto& reads = graph.reads(slot);
  return std::any_of(reads.begin(), reads.end(), [&](const TraceGraph::Read& read) {
    return f(read) && !graph.producer(read.row, read.op);
  });
}

/// The optimizer writes it, and no other op uses it.
bool is_optimizers_own(const TraceGraph& graph, SlotId slot) {
  const auto mine = [&](const auto& use) { return graph.op(use.op).phase == Phase::optimizer; };
  const auto& writes = graph.writes(slot);
  const auto& reads = graph.reads(slot);
  return !writes.empty() && !reads.empty() && std::all_of(writes.begin(), writes.end(), mine) &&
         std::all_of(reads.begin(), reads.end(), mine);
}

/// A value that a forward op kept for its backward (a gate of a recurrent cell): differentiable, and read
/// only by the backward pass. A weight is read in the forward pass.
bool is_inside_an_op(const TraceGraph& graph, SlotId slot) {
  const auto& reads = graph.reads(slot);
  if (reads.empty()) return false;
  const OpRow& first = graph.op(reads.front().op);
  return first.phase == Phase::backward && !(first.flags & kOpRecompute) &&
         (graph.tensor(reads.front().row).flags & kTensorRequiresGrad) &&
         !graph.producer(reads.front().row, reads.front().op);
}

}  // namespace

SlotOrigin origin_of(const TraceGraph& graph, SlotId id) {
  const Slot& slot = get(graph.doc(), id);
  if (slot.origin != SlotOrigin::external) return slot.origin;
  if (is_inside_an_op(graph, id)) return SlotOrigin::produced;
  if (any_first_read(graph, id, [&](const TraceGraph::Read& read) {
        return (graph.tensor(read.row).flags & kTensorRequiresGrad) ||
               graph.op(read.op).name.starts_with("fsdp::");
      }))
    return SlotOrigin::parameter;
  return is_optimizers_own(graph, id) ? SlotOrigin::optimizer_state : slot.origin;
}

bool mark_old_gradients(SnapshotDoc& doc) {
  bool marked = false;
  for (const OpRow& op : doc.ops) {
    if (op.phase != Phase::backward || !op.node.ends_with(kAccumulates) || op.written_count <= 0) continue;
    for (std::int32_t i = 0; i < op.written_count; ++i) {
      const auto entry = static_cast<std::size_t>(op.first_written) + static_cast<std::size_t>(i);
      const TensorRow* row = op.first_written >= 0 && entry < doc.written.size()
                                 ? find_row(doc, TensorId{doc.written[entry]})
                                 : nullptr;
      if (!row || !find_row(doc, SlotId{row->slot})) continue;
      Slot& slot = get(doc, SlotId{row->slot});
      if (slot.origin != SlotOrigin::external) continue;
      slot.origin = SlotOrigin::gradient;
      marked = true;
    }
  }
  return marked;
}

std::string first_read_words(const TraceGraph& graph, SlotId slot, const ArgumentName& argument_name) {
  const auto& reads = graph.reads(slot);
  // Skips views: the reader that uses the values comes after them.
  const auto first = std::find_if(reads.begin(), reads.end(), [&](const TraceGraph::Read& read) {
    return !computes_nothing(graph.op(read.op));
  });
  const TraceGraph::Read* read = first != reads.end() ? &*first : reads.empty() ? nullptr : &reads.front();
  if (!read) return "tensor without a name";
  const OpRow& op = graph.op(read->op);
  std::string text = "tensor first read by " + op.name;
  if (const std::string_view module = graph.module_of(read->op); !module.empty())
    text.append(" in ").append(module);
  for (const TraceGraph::Argument& argument : graph.arguments(read->op)) {
    if (argument.row != read->row) continue;
    const std::string name = argument_name ? argument_name(op, argument.position) : "";
    text += ", argument " + (name.empty() ? std::to_string(argument.position + 1) : name);
    break;
  }
  return text;
}

}  // namespace nanquest
