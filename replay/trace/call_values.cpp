#include "replay/trace/call_values.h"

#include <optional>
#include <stdexcept>

#include "probe/tensor/tensor_scan.h"
#include "replay/trace/dtype_map.h"

namespace nanquest::trace {
namespace {

bool same_place(const TensorRow& a, const TensorRow& b) {
  return a.slot == b.slot && a.storage_offset == b.storage_offset && a.sizes == b.sizes &&
         a.strides == b.strides;
}

}  // namespace

at::ScalarType CallValues::wanted(const OpPlan& op, const ArgPlan& arg, TensorId row, Precision p) const {
  const at::ScalarType recorded = scalar_type_of(slots_.row(row).dtype);
  return op.noise || arg.pinned ? recorded : target_type(recorded, p);
}

at::Tensor CallValues::input(const OpPlan& op, const ArgPlan& arg, TensorId row, Precision p, Call& call) {
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

c10::IValue CallValues::argument(const OpPlan& op, const ArgPlan& arg, Precision p, Call& call) {
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

void CallValues::keep(const OpPlan& op, Call& call) {
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

void CallValues::isolate(const OpPlan& op, const Call& call, StepOutcome& out) const {
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
