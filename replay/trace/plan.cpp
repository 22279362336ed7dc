#include "replay/trace/plan.h"

#include <algorithm>
#include <stdexcept>

#include "probe/tensor/tensor_scan.h"
#include "probe/trace/op_facts.h"
#include "replay/trace/dtype_map.h"
#include "replay/trace/fsdp_copies.h"
#include "replay/trace/operators.h"

namespace nanquest::trace {
namespace {

/// [first, first + count) of the tensor table, or of `table`, which holds rows of it. Throws if out of range.
std::vector<TensorId> row_range(const SnapshotDoc& doc, std::int64_t first, std::int64_t count,
                                const std::vector<std::int32_t>* table) {
  const std::size_t limit = table ? table->size() : doc.tensors.size();
  if (count < 0 || first < 0 || first + count > static_cast<std::int64_t>(limit))
    throw std::runtime_error("its output range is outside the tensor table");
  std::vector<TensorId> rows;
  for (const TensorId at : IdRange<TensorRow>(TensorId{first}, TensorId{first + count})) {
    const TensorId row = table ? TensorId{(*table)[at.index()]} : at;
    const TensorRow* tensor = find_row(doc, row);
    if (!tensor) throw std::runtime_error("its output row is outside the tensor table");
    rows.push_back((tensor->flags & kTensorUndefined) || tensor->slot == kNone ? TensorId{} : row);
  }
  return rows;
}

/// Attention operators are tagged as random even when their dropout is off.
bool draws_noise(const OpRow& op, const c10::FunctionSchema& schema, const std::vector<ArgPlan>& args) {
  if (!(op.flags & kOpSeeded)) return false;
  for (std::size_t i = 0; i < args.size(); ++i)
    if (draws_nothing_if_zero(schema.arguments()[i].name()) && args[i].constant.isDouble())
      return args[i].constant.toDouble() != 0.0;
  return true;
}

void plan_call(const SnapshotDoc& doc, const OpRow& op, OpPlan& plan) {
  if (op.flags & (kOpHostWrite | kOpOpaque | kOpFailed)) return;
  plan.view_only = computes_nothing(op);
  if (changes_metadata_only(op.name)) return;
  if (is_refused(op.name, op.overload))
    throw std::runtime_error("it reaches outside the recorded tensors and is never replayed");
  if (is_fsdp_copy(op.name)) define_fsdp_copies();
  const auto handle = c10::Dispatcher::singleton().findSchema({op.name, op.overload});
  if (!handle)
    throw std::runtime_error(
        "no such operator in this program; --load the library that defines it, or use the LibTorch "
        "version of the recording");
  plan.args = plan_arguments(doc, op, handle->schema());
  plan.noise = draws_noise(op, handle->schema(), plan.args);
  const auto on_device = [&](TensorId row) {
    const SlotId slot = row ? SlotId{get(doc, row).slot} : SlotId{};
    return slot && get(doc, slot).device != "cpu";
  };
  plan.on_device = std::any_of(plan.outputs.begin(), plan.outputs.end(), on_device) ||
                   std::any_of(plan.written.begin(), plan.written.end(), on_device);
  plan.factory = true;
  for (const ArgPlan& arg : plan.args)
    if (arg.kind == ArgPlan::Kind::tensor || arg.kind == ArgPlan::Kind::tensors ||
        arg.kind == ArgPlan::Kind::optional_tensors)
      plan.factory = false;
  plan.handle = *handle;
}

void plan_op(const SnapshotDoc& doc, const OpRow& op, OpPlan& plan) {
  try {
    plan.outputs = row_range(doc, op.first_output, op.output_count, nullptr);
    plan.written = row_range(doc, op.first_written, op.written_count, &doc.written);
    plan.sound = true;
    plan_call(doc, op, plan);
  } catch (const std::exception& e) {
    plan.problem = SnapshotDoc::qualified_name(op) + ": " + e.what();
    plan.handle.reset();
  }
}

/// What the uses of a slot's memory, in the order of execution, say about it.
class SlotFacts {
 public:
  SlotFacts(const TraceGraph& graph, PerRow<Slot, SlotPlan>& slots)
      : graph_(graph), slots_(slots), last_(slots.size()) {}

  void use(TensorId row, OpId op, bool writes) {
    const SlotId id = graph_.slot(row);
    if (!id) return;
    SlotPlan& slot = slots_[id];
    const at::ScalarType type = scalar_type_of(graph_.tensor(row).dtype);
    if (!last_[id]) slot.type = type;
    if (type != slot.type) {
      const bool pair = part_type(type) == part_type(slot.type);
      slot.mixed = slot.mixed || !pair;
      slot.paired = pair && !slot.mixed;
      if (pair) slot.type = part_type(type);
    }
    slot.changes = slot.changes || writes;
    last_[id] = std::max(last_[id], op);
  }

  void finish(PerRow<OpRow, OpPlan>& ops) {
    for (const SlotId id : ids_of<Slot>(graph_.doc())) {
      if (!last_[id]) slots_[id].type = scalar_type_of(get(graph_.doc(), id).dtype);
      if (ops.holds(last_[id])) ops[last_[id]].release.push_back(id);
    }
  }

 private:
  const TraceGraph& graph_;
  PerRow<Slot, SlotPlan>& slots_;
  PerRow<Slot, OpId> last_;
};

void plan_slots(TracePlan& plan) {
  const TraceGraph& graph = plan.graph;
  SlotFacts facts(graph, plan.slots);
  for (const OpId id : graph.ops()) {
    OpPlan& op = plan.ops[id];
    for (const TraceGraph::Argument& argument : graph.arguments(id)) {
      const auto position = static_cast<std::size_t>(argument.position);
      facts.use(argument.row, id, position < op.args.size() && op.args[position].written);
    }
    for (const TensorId row : op.outputs) facts.use(row, id, (graph.op(id).flags & kOpHostWrite) != 0);
    for (const TensorId row : op.written) facts.use(row, id, true);
    for (std::size_t k = 0; k < op.outputs.size(); ++k) {  // what the op wrote there is never read
      if (!op.outputs[k] || !is_scratch(graph.op(id).name, k)) continue;
      std::replace(op.written.begin(), op.written.end(), op.outputs[k], TensorId{});
      if (const SlotId slot = graph.slot(op.outputs[k])) plan.slots[slot].scratch = true;
    }
  }
  // The loss and the gradients are read when the run is over.
  facts.use(TensorId{graph.doc().loss}, graph.end(), false);
  for (const std::int32_t row : graph.doc().gradients) facts.use(TensorId{row}, graph.end(), false);
  facts.finish(plan.ops);
}

void plan_settling(TracePlan& plan) {
  const TraceGraph& graph = plan.graph;
  const auto settle = [&](std::int32_t row) {
    if (!graph.slot(TensorId{row})) return;
    if (const OpId last = graph.producer(TensorId{row}, graph.end()))
      plan.ops[last].settles.emplace_back(row);
  };
  settle(graph.doc().loss);
  for (const std::int32_t row : graph.doc().gradients) settle(row);
}

}  // namespace

TracePlan make_plan(const SnapshotDoc& doc) {
  PerRow<OpRow, OpPlan> ops(doc.ops.size());
  for (const OpId id : ids_of<OpRow>(doc)) plan_op(doc, get(doc, id), ops[id]);
  const auto takes_in = [&](OpId op, std::int32_t position) -> std::optional<bool> {
    const auto index = static_cast<std::size_t>(position);
    return index < ops[op].args.size() ? std::optional<bool>(ops[op].args[index].read) : std::nullopt;
  };
  TraceGraph graph(doc, takes_in);
  TracePlan plan{std::move(graph), std::move(ops), PerRow<Slot, SlotPlan>(doc.slots.size())};
  plan_slots(plan);
  plan_settling(plan);
  return plan;
}

}  // namespace nanquest::trace
