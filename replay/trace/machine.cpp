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

std::vector<Precision> precisions(const TracePlan& plan, Precision general, const TraceEdit& edit) {
  std::vector<Precision> result(plan.ops.size(), general);
  if (!edit.module_precision.empty()) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      const std::string& path = plan.ops[i].module;
      std::size_t best = 0;
      for (const auto& [module, precision] : edit.module_precision) {
        const bool covers = module.empty() || path == module || path.starts_with(module + ".");
        if (!covers || module.size() + 1 <= best) continue;
        best = module.size() + 1;
        result[i] = precision;
      }
    }
  }
  for (const auto& [op, precision] : edit.op_precision)
    if (op >= 0 && static_cast<std::size_t>(op) < result.size())
      result[static_cast<std::size_t>(op)] = precision;
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
  const auto mixed = [&](std::int32_t row) {
    const std::int32_t slot = row == kNone ? kNone : slots_.row(row).slot;
    return slot >= 0 && static_cast<std::size_t>(slot) < plan_.slots.size() &&
           plan_.slots[static_cast<std::size_t>(slot)].mixed;
  };
  for (const ArgPlan& arg : op.args)
    for (const std::int32_t row : arg.rows)
      if (mixed(row)) return true;
  for (const std::int32_t row : op.outputs)
    if (mixed(row)) return true;
  return false;
}

bool Machine::already_described(std::int32_t index, bool isolated) const {
  const OpPlan& op = plan_of(index);
  if (!op.view_only || edit_.op_edit.count(index)) return false;
  if (isolated) return true;
  for (const std::int32_t row : op.outputs)
    if (row != kNone && !slots_.available(row)) return false;
  return true;
}

StepOutcome Machine::step_in(std::int32_t index, InputSlots& inputs, bool isolated) {
  StepOutcome out;
  const OpRow& row = doc_.ops[static_cast<std::size_t>(index)];
  const OpPlan& op = plan_of(index);
  Precision p = precision_of(index);
  if (row.flags & kOpFailed) {
    out.error = "it threw when it was recorded; not run again";
    return out;
  }
  try {
    const bool missing = !op.handle && !op.problem.empty();
    if ((row.flags & (kOpHostWrite | kOpOpaque)) || (missing && !row.host_data.empty())) {
      substitute(index, out, isolated);
      return out;
    }
    if (already_described(index, isolated)) {
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
    run_call(index, p, call);
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
    run_call(index, Precision::as_recorded, call);
    isolated ? isolate(op, call, out) : keep(op, call);
    out.ran = true;
    out.error = "not possible in " + std::string(precision_name(p)) + ", ran as recorded: " + out.error;
  } catch (...) {
    out.ran = false;
  }
  return out;
}

StepOutcome Machine::step(std::int32_t index) {
  return step_in(index, slots_, false);
}

StepOutcome Machine::step_isolated(std::int32_t index, InputSlots& inputs) {
  return step_in(index, inputs, true);
}

void Machine::finish(std::int32_t index) {
  for (const std::int32_t slot : plan_of(index).release) slots_.release(slot);
}

std::vector<at::Tensor> Machine::views(const std::vector<std::int32_t>& rows) {
  std::vector<at::Tensor> tensors;
  tensors.reserve(rows.size());
  for (const std::int32_t row : rows) {
    try {
      tensors.push_back(row == kNone ? at::Tensor() : slots_.view(row));
    } catch (...) {
      tensors.emplace_back();
    }
  }
  return tensors;
}

std::vector<at::Tensor> Machine::outputs(std::int32_t index) {
  return views(plan_of(index).outputs);
}

std::vector<at::Tensor> Machine::written(std::int32_t index) {
  return views(plan_of(index).written);
}

}  // namespace nanquest::trace
