#include "replay/trace/machine.h"

#include <ATen/Functions.h>

#include "replay/trace/dtype_map.h"
#include "replay/trace/machine_call.h"

namespace nanquest::trace {
namespace {

/// The message of the exception that is being handled, without LibTorch's C++ backtrace, on one line.
std::string current_message() {
  std::string text;
  try {
    throw;
  } catch (const c10::Error& e) {
    text = e.what_without_backtrace();
  } catch (const std::exception& e) {
    text = e.what();
  } catch (...) {
    text = "an unknown exception";
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace

PerRow<OpRow, Precision> precisions(const TracePlan& plan, Precision general, const TraceEdit& edit) {
  PerRow<OpRow, Precision> result(plan.ops.size(), general);
  if (!edit.module_precision.empty()) {
    for (const OpId op : plan.graph.ops()) {
      const std::string_view path = plan.graph.module_of(op);
      std::size_t best = 0;
      for (const auto& [module, precision] : edit.module_precision) {
        const bool covers = module.empty() || path == module || path.starts_with(module + ".");
        if (!covers || module.size() + 1 <= best) continue;
        best = module.size() + 1;
        result[op] = precision;
      }
    }
  }
  for (const auto& [op, precision] : edit.op_precision)
    if (result.holds(OpId{op})) result[OpId{op}] = precision;
  return result;
}

Machine::Machine(const SnapshotDoc& doc, const TracePlan& plan, const DataSource& source, Precision precision,
                 const TraceEdit& edit)
    : doc_(doc),
      plan_(plan),
      source_(source),
      edit_(edit),
      precision_(precisions(plan, precision, edit)),
      slots_(doc, plan, source, precision) {
  slots_.set_edits(&edit.slot_edit);
}

bool Machine::touches_mixed(const OpPlan& op) const {
  const auto mixed = [&](TensorId row) {
    const SlotId slot = plan_.graph.slot(row);
    return slot && plan_.slots[slot].mixed;
  };
  for (const ArgPlan& arg : op.args)
    for (const TensorId row : arg.rows)
      if (mixed(row)) return true;
  for (const TensorId row : op.outputs)
    if (mixed(row)) return true;
  return false;
}

bool Machine::already_described(OpId id, bool isolated) const {
  const OpPlan& op = plan_of(id);
  if (!op.view_only || edit_.op_edit.count(id.row())) return false;
  if (isolated) return true;
  for (const TensorId row : op.outputs)
    if (row && !slots_.available(row)) return false;
  return true;
}

StepOutcome Machine::step_in(OpId id, InputSlots& inputs, bool isolated) {
  StepOutcome out;
  const OpRow& row = get(doc_, id);
  const OpPlan& op = plan_of(id);
  Precision p = precision_of(id);
  if (row.flags & kOpFailed) {
    out.error = "it threw when it was recorded; not run again";
    return out;
  }
  try {
    const bool missing = !op.handle && !op.problem.empty();
    if ((row.flags & (kOpHostWrite | kOpOpaque)) || (missing && !row.host_data.empty())) {
      substitute(id, out, isolated);
      return out;
    }
    if (already_described(id, isolated)) {
      out.ran = true;
      return out;
    }
    if (p != Precision::as_recorded && touches_mixed(op)) {
      out.note = "ran as recorded: it reads or writes memory that is used as several dtypes";
      p = Precision::as_recorded;
    } else if (p != Precision::as_recorded && op.noise) {
      out.note = "random numbers were drawn in the recorded dtype";
    }
    Call call{inputs, isolated, {}, {}, {}, {}};
    run_call(id, p, call);
    isolated ? isolate(op, call, out) : keep(op, call);
    out.ran = true;
    return out;
  } catch (...) {
    out.failed = true;
    out.error = current_message();
  }
  if (p == Precision::as_recorded) return out;
  try {  // so that the run can go on; the op still counts as failed
    Call call{inputs, isolated, {}, {}, {}, {}};
    run_call(id, Precision::as_recorded, call);
    isolated ? isolate(op, call, out) : keep(op, call);
    out.ran = true;
    out.error = "not possible in " + std::string(precision_name(p)) + ", ran as recorded: " + out.error;
  } catch (...) {
    out.ran = false;
  }
  return out;
}

StepOutcome Machine::step(OpId id) {
  return step_in(id, slots_, false);
}

StepOutcome Machine::step_isolated(OpId id, InputSlots& inputs) {
  return step_in(id, inputs, true);
}

void Machine::finish(OpId id) {
  for (const SlotId slot : plan_of(id).release) slots_.release(slot);
}

std::vector<at::Tensor> Machine::views(const std::vector<TensorId>& rows) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(rows.size());
  for (const TensorId row : rows) {
    try {
      tensors.push_back(row ? slots_.view(row) : at::Tensor());
    } catch (...) {
      tensors.emplace_back();
    }
  }
  return tensors;
}

std::vector<at::Tensor> Machine::outputs(OpId id) {
  return views(plan_of(id).outputs);
}

std::vector<at::Tensor> Machine::written(OpId id) {
  return views(plan_of(id).written);
}

}  // namespace nanquest::trace
