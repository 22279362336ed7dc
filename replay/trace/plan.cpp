#include "replay/trace/plan.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "probe/observe/tensor_scan.h"
#include "probe/trace/op_facts.h"
#include "replay/trace/dtype_map.h"
#include "replay/trace/special.h"

namespace nanquest::trace {
namespace {

/// Tensor rows of [first, first + count), looked up through `table` if it is given. Throws if out of range.
std::vector<std::int32_t> row_range(const SnapshotDoc& doc, std::int32_t first, std::int32_t count,
                                    const std::vector<std::int32_t>* table) {
  const std::size_t limit = table ? table->size() : doc.tensors.size();
  if (count < 0 || first < 0 || static_cast<std::size_t>(first) + static_cast<std::size_t>(count) > limit)
    throw std::runtime_error("its output range is outside the tensor table");
  std::vector<std::int32_t> rows;
  for (std::int32_t i = first; i < first + count; ++i) {
    const std::int32_t row = table ? (*table)[static_cast<std::size_t>(i)] : i;
    if (row < 0 || static_cast<std::size_t>(row) >= doc.tensors.size())
      throw std::runtime_error("its output row is outside the tensor table");
    const TensorRow& tensor = doc.tensors[static_cast<std::size_t>(row)];
    rows.push_back((tensor.flags & kTensorUndefined) || tensor.slot == kNone ? kNone : row);
  }
  return rows;
}

bool is_non_finite(const c10::IValue& value) {
  if (value.isDouble()) return !std::isfinite(value.toDouble());
  if (value.isDoubleList())
    for (const double x : value.toDoubleList())
      if (!std::isfinite(x)) return true;
  return false;
}

std::string module_of(const SnapshotDoc& doc, const OpRow& op) {
  std::int32_t module = op.module;
  if (module == kNone && op.forward_op >= 0 && static_cast<std::size_t>(op.forward_op) < doc.ops.size())
    module = doc.ops[static_cast<std::size_t>(op.forward_op)].module;
  if (module < 0 || static_cast<std::size_t>(module) >= doc.modules.size()) return {};
  return doc.modules[static_cast<std::size_t>(module)].path;
}

/// Attention operators are tagged as drawing even when their dropout is off.
bool draws_noise(const OpRow& op, const c10::FunctionSchema& schema, const std::vector<ArgPlan>& args) {
  if (!(op.flags & kOpSeeded)) return false;
  const auto index = schema.argumentIndexWithName("dropout_p");
  if (!index) return true;
  const c10::IValue& p = args[static_cast<std::size_t>(*index)].constant;
  return !(p.isDouble() && p.toDouble() == 0.0);
}

void plan_call(const SnapshotDoc& doc, const OpRow& op, OpPlan& plan) {
  if (op.flags & (kOpHostWrite | kOpOpaque | kOpFailed)) return;
  plan.view_only = (op.flags & kOpViewOnly) || is_metadata_only(op.name);
  if (is_metadata_only(op.name)) return;
  if (is_refused(op.name, op.overload))
    throw std::runtime_error("it reaches outside the recorded tensors and is never replayed");
  const auto handle = c10::Dispatcher::singleton().findSchema({op.name, op.overload});
  if (!handle)
    throw std::runtime_error(
        "no such operator in this program; load the library that defines it, or use the LibTorch "
        "version of the recording");
  plan.args = plan_arguments(doc, op, handle->schema());
  plan.noise = draws_noise(op, handle->schema(), plan.args);
  plan.factory = true;
  for (const ArgPlan& arg : plan.args) {
    if (arg.kind == ArgPlan::Kind::tensor || arg.kind == ArgPlan::Kind::tensors ||
        arg.kind == ArgPlan::Kind::optional_tensors)
      plan.factory = false;
    plan.bad_constant = plan.bad_constant || is_non_finite(arg.constant);
  }
  plan.handle = *handle;
}

void plan_op(const SnapshotDoc& doc, const OpRow& op, OpPlan& plan) {
  try {
    plan.module = module_of(doc, op);
    plan.outputs = row_range(doc, op.first_output, op.output_count, nullptr);
    plan.written = row_range(doc, op.first_written, op.written_count, &doc.written);
    plan.sound = true;
    plan_call(doc, op, plan);
  } catch (const std::exception& e) {
    plan.problem = SnapshotDoc::qualified_name(op) + ": " + e.what();
    plan.handle.reset();
  }
}

/// Walks the rows of every op for what they say about slots.
class SlotFacts {
 public:
  SlotFacts(const SnapshotDoc& doc, TracePlan& plan) : doc_(doc), plan_(plan), last_(doc.slots.size(), -1) {
    seen_.resize(doc.slots.size(), false);
  }

  void use(std::int32_t row, std::int32_t op, bool writes) {
    if (row < 0 || static_cast<std::size_t>(row) >= doc_.tensors.size()) return;
    const TensorRow& tensor = doc_.tensors[static_cast<std::size_t>(row)];
    if (tensor.slot < 0 || static_cast<std::size_t>(tensor.slot) >= doc_.slots.size()) return;
    const auto s = static_cast<std::size_t>(tensor.slot);
    SlotPlan& slot = plan_.slots[s];
    const at::ScalarType type = scalar_type_of(tensor.dtype);
    if (!seen_[s]) slot.type = type;
    if (type != slot.type) {
      const bool pair = part_type(type) == part_type(slot.type);
      slot.mixed = slot.mixed || !pair;
      slot.paired = pair && !slot.mixed;
      if (pair) slot.type = part_type(type);
    }
    seen_[s] = true;
    slot.changes = slot.changes || writes;
    last_[s] = std::max(last_[s], op);
  }

  void finish() {
    for (std::size_t s = 0; s < last_.size(); ++s) {
      if (!seen_[s]) plan_.slots[s].type = scalar_type_of(doc_.slots[s].dtype);
      if (last_[s] >= 0 && static_cast<std::size_t>(last_[s]) < plan_.ops.size())
        plan_.ops[static_cast<std::size_t>(last_[s])].release.push_back(static_cast<std::int32_t>(s));
    }
  }

 private:
  const SnapshotDoc& doc_;
  TracePlan& plan_;
  std::vector<std::int32_t> last_;
  std::vector<bool> seen_;
};

}  // namespace

TracePlan make_plan(const SnapshotDoc& doc) {
  TracePlan plan;
  plan.ops.resize(doc.ops.size());
  plan.slots.resize(doc.slots.size());
  SlotFacts facts(doc, plan);
  for (std::size_t i = 0; i < doc.ops.size(); ++i) {
    OpPlan& op = plan.ops[i];
    plan_op(doc, doc.ops[i], op);
    const auto index = static_cast<std::int32_t>(i);
    for (const ArgPlan& arg : op.args)
      for (const std::int32_t row : arg.rows) facts.use(row, index, arg.written);
    if (op.args.empty()) {  // never executed, but what it read is looked at
      const OpRow& row = doc.ops[i];
      for (std::int64_t a = row.first_arg; a < std::int64_t{row.first_arg} + row.arg_count; ++a)
        if (a >= 0 && static_cast<std::size_t>(a) < doc.args.size() &&
            doc.args[static_cast<std::size_t>(a)].kind == ArgKind::tensor)
          facts.use(doc.args[static_cast<std::size_t>(a)].tensor, index, false);
    }
    for (const std::int32_t row : op.outputs) facts.use(row, index, (doc.ops[i].flags & kOpHostWrite) != 0);
    for (const std::int32_t row : op.written) facts.use(row, index, true);
    for (std::size_t k = 0; k < op.outputs.size(); ++k)  // nobody looks at what the op wrote there
      if (op.outputs[k] != kNone && is_scratch(doc.ops[i].name, k))
        std::replace(op.written.begin(), op.written.end(), op.outputs[k], kNone);
  }
  // The loss and the gradients are looked at when the run is over.
  const auto end = static_cast<std::int32_t>(doc.ops.size());
  facts.use(doc.loss, end, false);
  for (const std::int32_t row : doc.gradients) facts.use(row, end, false);
  facts.finish();
  return plan;
}

}  // namespace nanquest::trace
