// Machine: an op's arguments, its call, and its returned values.
#include "replay/trace/machine_call.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>

#include <mutex>
#include <stdexcept>

#include "probe/tensor/tensor_scan.h"
#include "probe/trace/op_facts.h"
#include "replay/trace/dtype_map.h"
#include "replay/trace/operators.h"

namespace nanquest::trace {
namespace {

void flatten(const c10::IValue& value, std::vector<at::Tensor>& out) {
  if (value.isTensor()) {
    out.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) out.push_back(tensor);
  } else if (value.isList()) {
    for (const c10::IValue& entry : value.toListRef()) flatten(entry, out);
  }
}

/// Autograd was on when the op was recorded: a result required a gradient, or it returned memory that only
/// its backward reads.
bool kept_for_backward(const SnapshotDoc& doc, const std::string& name, const OpPlan& op) {
  for (std::size_t k = 0; k < op.outputs.size(); ++k) {
    const TensorId row = op.outputs[k];
    if (!row) continue;
    if (is_scratch(name, k) || (get(doc, row).flags & kTensorRequiresGrad)) return true;
  }
  return false;
}

bool same_place(const TensorRow& a, const TensorRow& b) {
  return a.slot == b.slot && a.storage_offset == b.storage_offset && a.sizes == b.sizes &&
         a.strides == b.strides;
}

}  // namespace

at::ScalarType Machine::wanted(const OpPlan& op, const ArgPlan& arg, TensorId row, Precision p) const {
  const at::ScalarType recorded = scalar_type_of(slots_.row(row).dtype);
  return op.noise || arg.pinned ? recorded : target_type(recorded, p);
}

at::Tensor Machine::input(const OpPlan& op, const ArgPlan& arg, TensorId row, Precision p, Call& call) {
  if (!row) return {};
  const at::ScalarType want = wanted(op, arg, row, p);
  if (!arg.written) return call.inputs.read(row, want);
  for (const Call::Mutable& m : call.mutables)
    if (same_place(slots_.row(m.row), slots_.row(row))) return m.tensor;
  at::Tensor tensor = call.inputs.read(row, want);
  if (call.isolated && call.inputs.holds(row, tensor)) tensor = tensor.clone();
  call.mutables.push_back({row, tensor});
  return tensor;
}

std::vector<c10::IValue> Machine::arguments(OpId op) {
  Call call{slots_};
  const OpPlan& plan = plan_of(op);
  for (const ArgPlan& arg : plan.args) call.stack.push_back(argument(plan, arg, precision_of(op), call));
  return std::move(call.stack);
}

c10::IValue Machine::argument(const OpPlan& op, const ArgPlan& arg, Precision p, Call& call) {
  using Kind = ArgPlan::Kind;
  const auto tensor_of = [&](TensorId row) {
    at::Tensor tensor = input(op, arg, row, p, call);
    if (tensor.defined()) call.tensors.push_back(tensor);
    return tensor;
  };
  switch (arg.kind) {
    case Kind::constant:
      if (arg.on_device && !slots_.device().is_cpu()) return slots_.device();
      break;
    case Kind::tensor:
      return tensor_of(arg.rows[0]);  // an undefined one unchanged: many backward kernels refuse None
    case Kind::tensors: {
      c10::List<at::Tensor> list;
      for (const TensorId row : arg.rows) list.push_back(tensor_of(row));
      return list;
    }
    case Kind::optional_tensors: {
      c10::List<std::optional<at::Tensor>> list;
      for (const TensorId row : arg.rows) {
        at::Tensor tensor = tensor_of(row);
        list.push_back(tensor.defined() ? std::optional<at::Tensor>(std::move(tensor)) : std::nullopt);
      }
      return list;
    }
    case Kind::scalar_type:
      if (op.noise) break;
      return static_cast<std::int64_t>(target_type(static_cast<at::ScalarType>(arg.constant.toInt()), p));
    case Kind::missing_dtype: {
      // A factory without a dtype makes the default one, which ignores this run's precision.
      if (p == Precision::as_recorded || op.noise || !op.factory || op.outputs.empty() || !op.outputs[0])
        break;
      const at::ScalarType recorded = scalar_type_of(slots_.row(op.outputs[0]).dtype);
      if (!is_float(recorded)) break;
      return static_cast<std::int64_t>(target_type(recorded, p));
    }
    case Kind::half_to_float:
      return p == Precision::as_recorded ? arg.constant : c10::IValue(false);
  }
  return arg.constant;
}

void Machine::set_generator(OpId id) const {
  const OpRow& op = get(doc_, id);
  const bool on_device = plan_of(id).noise && plan_of(id).on_device;
  if (op.rng == kNone || (on_device && slots_.device().is_cpu())) return;
  if (op.rng < 0 || static_cast<std::size_t>(op.rng) >= doc_.rng_states.size())
    throw std::runtime_error("its generator state is outside the table");
  const at::Tensor state = source_(doc_.rng_states[static_cast<std::size_t>(op.rng)]);
  at::Generator generator = on_device ? at::globalContext().defaultGenerator(slots_.device())
                                      : at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

void Machine::execute(OpId id, Precision p, Call& call) {
  const OpPlan& op = plan_of(id);
  const std::string& name = get(doc_, id).name;
  const auto edit = edit_.op_edit.find(id.row());
  if (edit != edit_.op_edit.end() && edit->second && edit->second(call.stack)) return;
  for (Call::Mutable& m : call.mutables) {  // the edit may have replaced the tensor
    for (std::size_t i = 0; i < op.args.size() && i < call.stack.size(); ++i)
      if (op.args[i].kind == ArgPlan::Kind::tensor && op.args[i].written && op.args[i].rows[0] == m.row &&
          call.stack[i].isTensor())
        m.tensor = call.stack[i].toTensor();
  }
  const bool drawn_elsewhere = op.noise && op.on_device && slots_.device().is_cpu();
  if (follows_from_mask(name) && (drawn_elsewhere || p != Precision::as_recorded) && !op.args.empty() &&
      op.args[0].kind == ArgPlan::Kind::tensor && op.args[0].rows[0]) {
    const TensorId row = op.args[0].rows[0];
    const at::ScalarType wide = target_type(scalar_type_of(slots_.row(row).dtype), p);
    at::Tensor drawn;
    if (drawn_elsewhere)
      for (const auto& value : recorded_.of(id, op)) drawn = value.tensor;  // only the mask is stored
    if (mask_then_widen(name, call.inputs.read(row, wide), drawn, call.stack)) return;
  }
  if (p != Precision::as_recorded && compute_wide(name, call.stack)) return;
  // No tensor here requires a gradient, so no graph is built; but some kernels check the mode themselves.
  const at::AutoGradMode grad_mode(kept_for_backward(doc_, name, op));
  op.handle->callBoxed(call.stack);
}

void Machine::run_call(OpId id, Precision p, Call& call) {
  const OpPlan& op = plan_of(id);
  if (!op.handle) throw std::runtime_error(op.problem.empty() ? "there is nothing to execute" : op.problem);
  const bool edited = edit_.op_edit.count(id.row()) > 0;  // an edit may write into any argument
  for (const ArgPlan& arg : op.args) {
    if (call.isolated) break;
    if (!arg.written && !edited) continue;
    for (const TensorId row : arg.rows) {
      if (!row) continue;
      if (arg.written && !slots_.available(row)) slots_.allocate(row);
      if (arg.written) slots_.widen(row, wanted(op, arg, row, p));
      if (slots_.available(row)) (void)slots_.type(row), slots_.own(row);
    }
  }
  call.stack.reserve(op.args.size());
  for (const ArgPlan& arg : op.args) call.stack.push_back(argument(op, arg, p, call));
  set_generator(id);
  execute(id, p, call);
  for (const c10::IValue& value : call.stack) flatten(value, call.returned);
}

void Machine::keep(const OpPlan& op, Call& call) {
  for (const Call::Mutable& m : call.mutables)
    if (!slots_.holds(m.row, m.tensor)) slots_.store(m.row, m.tensor);
  for (std::size_t k = 0; k < call.returned.size() && k < op.outputs.size(); ++k) {
    const TensorId row = op.outputs[k];
    if (!row) continue;
    at::Tensor tensor = call.returned[k];
    if (!tensor.defined())
      throw std::runtime_error("it returned an undefined tensor where it had returned values");
    bool is_argument = false;  // already stored above
    for (const Call::Mutable& m : call.mutables)
      is_argument =
          is_argument || (slots_.row(m.row).slot == slots_.row(row).slot && tensor.is_alias_of(m.tensor));
    if (is_argument) continue;
    if (!slots_.available(row))  // recorded as new memory: it must not share an argument's memory here
      for (const at::Tensor& arg : call.tensors)
        if (tensor.has_storage() && tensor.is_alias_of(arg)) tensor = tensor.clone();
    slots_.bind(row, tensor);
  }
}

void Machine::isolate(const OpPlan& op, Call& call, StepOutcome& out) const {
  const auto find = [&](TensorId row) -> at::Tensor {
    if (!row) return {};
    for (std::size_t k = 0; k < op.outputs.size() && k < call.returned.size(); ++k)
      if (op.outputs[k] == row) return call.returned[k];
    for (const Call::Mutable& m : call.mutables)
      if (same_place(slots_.row(m.row), slots_.row(row))) return m.tensor;
    for (const Call::Mutable& m : call.mutables)
      if (slots_.row(m.row).slot == slots_.row(row).slot) return m.tensor;
    for (std::size_t k = 0; k < op.outputs.size() && k < call.returned.size(); ++k)
      if (op.outputs[k] && same_place(slots_.row(op.outputs[k]), slots_.row(row))) return call.returned[k];
    return {};
  };
  for (const TensorId row : op.outputs) out.outputs.push_back(find(row));
  for (const TensorId row : op.written) out.written.push_back(find(row));
}

}  // namespace nanquest::trace
