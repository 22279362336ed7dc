// Machine: the call of an op.
#include "replay/trace/machine.h"

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

}  // namespace

std::vector<c10::IValue> Machine::arguments(OpId op) {
  Call call{slots_};
  const OpPlan& plan = plan_of(op);
  for (const ArgPlan& arg : plan.args)
    call.stack.push_back(values_.argument(plan, arg, precision_of(op), call));
  return std::move(call.stack);
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
      if (arg.written) slots_.widen(row, values_.wanted(op, arg, row, p));
      if (slots_.available(row)) (void)slots_.type(row), slots_.own(row);
    }
  }
  call.stack.reserve(op.args.size());
  for (const ArgPlan& arg : op.args) call.stack.push_back(values_.argument(op, arg, p, call));
  set_generator(id);
  execute(id, p, call);
  for (const c10::IValue& value : call.stack) flatten(value, call.returned);
}

}  // namespace nanquest::trace
