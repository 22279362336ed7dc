#include "replay/trace/machine.h"

#include <ATen/Functions.h>
#include <c10/core/TensorOptions.h>

#include "replay/trace/dtype_map.h"
#include "replay/trace/fsdp_copies.h"
#include "replay/trace/operators.h"

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

Machine::Machine(const SnapshotDoc& doc, const TracePlan& plan, const DataSource& source, Precision precision,
                 const TraceEdit& edit, c10::Device device)
    : Machine(doc, plan, source, precision, edit, SlotStore(doc, plan, source, precision, device)) {}

Machine::Machine(const SnapshotDoc& doc, const TracePlan& plan, const DataSource& source, Precision precision,
                 const TraceEdit& edit, SlotStore slots)
    : doc_(doc),
      plan_(plan),
      source_(source),
      recorded_(doc, source),
      edit_(edit),
      precision_(precision_of_ops(plan.graph, precision, edit)),
      first_changed_(precision == Precision::as_recorded ? edit.first_op(plan.graph) : OpId{0}),
      slots_(std::move(slots)) {
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
  // An op that only changes a tensor's metadata is never executed, whatever an edit asks.
  if (!op.view_only || (op.handle && edit_.op_edit.count(id.row()))) return false;
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
    const bool missing = !op.handle && !op.problem.empty(), elsewhere = belongs_elsewhere(id);
    if (elsewhere && !missing && compute_here(id, p, inputs, isolated, out)) return out;
    if ((row.flags & (kOpHostWrite | kOpOpaque)) || ((missing || elsewhere) && !row.host_data.empty()) ||
        is_kept_copy(row)) {
      substitute(id, out, isolated);
      return out;
    }
    if (already_described(id, isolated)) {
      out.ran = true;
      return out;
    }
    if (p != Precision::as_recorded && touches_mixed(op)) {
      out.note = "ran as recorded: it reads or writes memory that is used as several dtypes";
      out.kept_format = true;
      p = Precision::as_recorded;
    } else if (p != Precision::as_recorded && op.noise) {
      out.note = "random numbers were drawn in the recorded dtype";
    }
    Call call{inputs, isolated};
    run_call(id, p, call);
    take(op, call, isolated, out);
    return out;
  } catch (...) {
    out.failed = true;
    out.error = current_message();
  }
  if (p == Precision::as_recorded) {
    if (run_rounded(id, inputs, isolated, out)) {
      out.failed = false;
      out.error.clear();
    } else if (!row.host_data.empty()) {  // defined by a library, or in Python, for another device
      take_recorded(id, isolated, out);
    }
    return out;
  }
  try {  // so that the run can go on
    Call call{inputs, isolated};
    run_call(id, Precision::as_recorded, call);
    take(op, call, isolated, out);
    out.kept_format = true;
    out.failed = false;
    out.error = "not possible in " + std::string(precision_name(p)) + ", ran as recorded: " + out.error;
  } catch (...) {
    out.ran = false;
  }
  return out;
}

StepOutcome Machine::step(OpId id) {
  const std::vector<at::Tensor> given = given_to_stand_in(id);
  StepOutcome out = step_in(id, slots_, false);
  if (out.substituted) put_stand_in(id, given);
  if (out.ran && plan_.unwritten) fill_unwritten(id);
  if (out.ran || out.substituted) edit_outputs(id);
  return out;
}

/// What the op writes, in memory that no checkpoint shares.
std::vector<at::Tensor> Machine::own_written(OpId id) {
  for (const TensorId row : plan_of(id).written)
    if (row && slots_.available(row)) slots_.own(row);
  return written(id);
}

void Machine::fill_unwritten(OpId id) {
  const OpRow& row = get(doc_, id);
  // resize_ keeps what was there.
  if (!(row.flags & kOpUninitialised) || row.name.ends_with("_")) return;
  for (const at::Tensor& tensor : own_written(id))
    if (tensor.defined() && tensor.is_floating_point()) at::Tensor(tensor).fill_(*plan_.unwritten);
}

void Machine::edit_outputs(OpId id) {
  const auto edit = edit_.output_edit.find(id.row());
  if (edit == edit_.output_edit.end() || !edit->second) return;
  std::vector<at::Tensor> tensors = own_written(id);
  edit->second(tensors);
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
