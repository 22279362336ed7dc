// Machine: ops that can't run here as they were recorded: what a CPU can compute of those of a device, and
// what takes its recorded results.
#include <algorithm>
#include <stdexcept>

#include "probe/tensor/tensor_scan.h"
#include "replay/trace/attention.h"
#include "replay/trace/dtype_map.h"
#include "replay/trace/machine.h"
#include "replay/trace/operators.h"

namespace nanquest::trace {

bool Machine::belongs_elsewhere(OpId id) const {
  const OpPlan& op = plan_of(id);
  if (!op.on_device) return false;
  const bool here = !slots_.device().is_cpu();  // on a device of that kind
  if (op.noise && !here) return !follows_from_mask(get(doc_, id).name);
  const auto key = c10::computeDispatchKey(std::nullopt, std::nullopt, slots_.device());
  return op.handle && !op.handle->hasComputedKernelForDispatchKey(key);
}

void Machine::take(const OpPlan& op, Call& call, bool isolated, StepOutcome& out) {
  isolated ? values_.isolate(op, call, out) : values_.keep(op, call);
  out.ran = true;
}

bool Machine::compute_here(OpId id, Precision p, InputSlots& inputs, bool isolated, StepOutcome& out) try {
  const OpRow& row = get(doc_, id);
  if (!is_fused_attention(row.name) || (id < first_changed_ && !row.host_data.empty())) return false;
  OpPlan op = plan_of(id);
  op.noise = false;  // random numbers are drawn anew: in any precision
  std::vector<const TensorRow*> outputs;
  for (const TensorId output : op.outputs) outputs.push_back(output ? &slots_.row(output) : nullptr);
  Call call{inputs, isolated};
  for (const ArgPlan& arg : op.args) call.stack.push_back(values_.argument(op, arg, p, call));
  if (!compute_attention(row.name, op.handle->schema(), outputs, id.row() + 1, call.stack)) return false;
  for (const c10::IValue& value : call.stack) call.returned.push_back(value.toTensor());
  take(op, call, isolated, out);
  return true;
} catch (const std::exception&) {  // only its recorded values are left
  return false;
}

bool Machine::run_rounded(OpId id, InputSlots& inputs, bool isolated, StepOutcome& out) try {
  const OpPlan& op = plan_of(id);
  const bool writes = std::any_of(op.args.begin(), op.args.end(), [](const ArgPlan& a) { return a.written; });
  if (!op.on_device || !slots_.device().is_cpu() || op.noise || writes) return false;
  Call call{inputs, isolated};
  run_call(id, Precision::fp32, call);
  for (std::size_t k = 0; k < call.returned.size() && k < op.outputs.size(); ++k)
    if (op.outputs[k] && is_float(call.returned[k].scalar_type()))
      call.returned[k] = call.returned[k].to(scalar_type_of(slots_.row(op.outputs[k]).dtype));
  take(op, call, isolated, out);
  out.note = "ran in fp32, and was rounded: the CPU has no kernel for these formats";
  return true;
} catch (const std::exception&) {
  return false;
}

void Machine::take_recorded(OpId id, bool isolated, StepOutcome& out) try {
  StepOutcome taken;
  substitute(id, taken, isolated);
  taken.note = "its recorded outputs were used: " + out.error;
  out = std::move(taken);
} catch (const std::exception&) {  // the reason of its failure says more
}

void Machine::substitute(OpId id, StepOutcome& out, bool isolated) {
  const OpRow& row = get(doc_, id);
  const OpPlan& op = plan_of(id);
  const bool host = (row.flags & kOpHostWrite) != 0;
  if (!op.sound) throw std::runtime_error(op.problem);
  const std::vector<RecordedResults::Value> values = recorded_.of(id, op);
  if (host && values.empty()) throw std::runtime_error("the bytes of a host write are missing");

  // A result must not keep its old value although the op wrote it.
  for (const TensorId written : op.written) {
    bool covered = !written;
    for (const auto& s : values) covered = covered || slots_.row(s.row).slot == slots_.row(written).slot;
    if (!covered && !(row.flags & kOpUninitialised))
      throw std::runtime_error(
          op.problem.empty() ? "it can't be executed again and what it wrote was not stored" : op.problem);
  }
  if (isolated) {
    const auto find = [&](TensorId wanted) -> at::Tensor {
      for (const auto& s : values)
        if (s.row == wanted) return s.tensor;
      for (const auto& s : values)
        if (wanted && slots_.row(s.row).slot == slots_.row(wanted).slot) return s.tensor;
      return {};
    };
    for (const TensorId wanted : op.outputs) out.outputs.push_back(find(wanted));
    for (const TensorId wanted : op.written) out.written.push_back(find(wanted));
  } else {
    for (const auto& s : values) {
      if (!slots_.available(s.row)) slots_.allocate(s.row);
      slots_.widen(s.row, target_type(s.tensor.scalar_type(), precision_of(id)));
      slots_.store(s.row, s.tensor);
    }
  }
  out.ran = host;
  out.substituted = !host;
}

std::vector<at::Tensor> Machine::given_to_stand_in(OpId id) {
  const auto found = edit_.stand_ins.find(id.row());
  if (found == edit_.stand_ins.end()) return {};
  std::vector<at::Tensor> given = views(found->second.reads);
  for (at::Tensor& tensor : given)  // the op may overwrite its inputs
    if (tensor.defined()) tensor = tensor.resolve_conj().resolve_neg().clone();
  return given;
}

void Machine::put_stand_in(OpId id, const std::vector<at::Tensor>& given) {
  const auto found = edit_.stand_ins.find(id.row());
  if (found == edit_.stand_ins.end() || !found->second.put) return;
  try {
    std::vector<at::Tensor> tensors = own_written(id);
    found->second.put(given, tensors);
  } catch (const std::exception&) {  // the given result does not fit: the recorded one stays
  }
}

}  // namespace nanquest::trace
