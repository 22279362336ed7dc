#include "replay/trace/machine.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/core/Generator.h>

#include <mutex>
#include <stdexcept>

#include "probe/observe/tensor_scan.h"
#include "replay/trace/dtype_map.h"
#include "replay/trace/special.h"

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

bool same_place(const TensorRow& a, const TensorRow& b) {
  return a.slot == b.slot && a.storage_offset == b.storage_offset && a.sizes == b.sizes &&
         a.strides == b.strides;
}

}  // namespace

/// One execution: its arguments, and what came back.
struct Machine::Call {
  InputSlots& inputs;
  bool isolated = false;
  std::vector<c10::IValue> stack;
  std::vector<at::Tensor> tensors;  ///< every tensor argument
  struct Mutable {
    std::int32_t row;
    at::Tensor tensor;
  };
  std::vector<Mutable> mutables;  ///< arguments that the op writes
  std::vector<at::Tensor> returned;
};

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

at::Tensor as_row(const TensorRow& row, const at::Tensor& stored) {
  const at::ScalarType type = scalar_type_of(row.dtype);
  std::int64_t n = 1;
  for (const std::int64_t size : row.sizes) {
    if (size < 0 || (size != 0 && n > (std::int64_t{1} << 48) / size))
      throw std::runtime_error("a tensor row has an impossible size");
    n *= size;
  }
  const at::Tensor bytes = stored.contiguous().view({-1}).view(at::kByte);
  if (bytes.numel() < n * static_cast<std::int64_t>(c10::elementSize(type)))
    throw std::runtime_error("the stored bytes are fewer than the tensor needs");
  return bytes.narrow(0, 0, n * static_cast<std::int64_t>(c10::elementSize(type))).view(type).view(row.sizes);
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

at::ScalarType Machine::wanted(const OpPlan& op, const ArgPlan& arg, std::int32_t row, Precision p) const {
  const at::ScalarType recorded = scalar_type_of(slots_.row(row).dtype);
  return op.noise || arg.pinned ? recorded : target_type(recorded, p);
}

at::Tensor Machine::input(const OpPlan& op, const ArgPlan& arg, std::int32_t row, Precision p, Call& call) {
  if (row == kNone) return {};
  const at::ScalarType want = wanted(op, arg, row, p);
  if (!arg.written) return call.inputs.read(row, want);
  for (const Call::Mutable& m : call.mutables)
    if (same_place(slots_.row(m.row), slots_.row(row))) return m.tensor;
  at::Tensor tensor = call.inputs.read(row, want);
  if (call.isolated && call.inputs.holds(row, tensor)) tensor = tensor.clone();
  call.mutables.push_back({row, tensor});
  return tensor;
}

c10::IValue Machine::argument(const OpPlan& op, const ArgPlan& arg, Precision p, Call& call) {
  using Kind = ArgPlan::Kind;
  const auto tensor_of = [&](std::int32_t row) {
    at::Tensor tensor = input(op, arg, row, p, call);
    if (tensor.defined()) call.tensors.push_back(tensor);
    return tensor;
  };
  switch (arg.kind) {
    case Kind::constant:
      break;
    case Kind::tensor: {
      at::Tensor tensor = tensor_of(arg.rows[0]);
      return tensor.defined() ? c10::IValue(std::move(tensor)) : c10::IValue();
    }
    case Kind::tensors: {
      c10::List<at::Tensor> list;
      for (const std::int32_t row : arg.rows) list.push_back(tensor_of(row));
      return list;
    }
    case Kind::optional_tensors: {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::int32_t row : arg.rows) {
        at::Tensor tensor = tensor_of(row);
        list.push_back(tensor.defined() ? std::optional<at::Tensor>(std::move(tensor)) : std::nullopt);
      }
      return list;
    }
    case Kind::scalar_type:
      if (op.noise) break;
      return static_cast<std::int64_t>(target_type(static_cast<at::ScalarType>(arg.constant.toInt()), p));
    case Kind::missing_dtype: {
      // A factory without a dtype makes the default one, which does not know of this run's precision.
      if (p == Precision::as_recorded || op.noise || !op.factory || op.outputs.empty() ||
          op.outputs[0] == kNone)
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

void Machine::set_generator(std::int32_t index) const {
  const OpRow& op = doc_.ops[static_cast<std::size_t>(index)];
  if (op.rng == kNone) return;
  if (op.rng < 0 || static_cast<std::size_t>(op.rng) >= doc_.rng_states.size())
    throw std::runtime_error("its generator state is outside the table");
  const at::Tensor state = source_(doc_.rng_states[static_cast<std::size_t>(op.rng)]);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_state(state);
}

void Machine::execute(std::int32_t index, Precision p, Call& call) {
  const OpPlan& op = plan_of(index);
  const std::string& name = doc_.ops[static_cast<std::size_t>(index)].name;
  const auto edit = edit_.op_edit.find(index);
  if (edit != edit_.op_edit.end() && edit->second && edit->second(call.stack)) return;
  for (Call::Mutable& m : call.mutables) {  // the edit may have put another tensor in its place
    for (std::size_t i = 0; i < op.args.size() && i < call.stack.size(); ++i)
      if (op.args[i].kind == ArgPlan::Kind::tensor && op.args[i].written && op.args[i].rows[0] == m.row &&
          call.stack[i].isTensor())
        m.tensor = call.stack[i].toTensor();
  }
  if (op.noise && p != Precision::as_recorded && !op.args.empty() &&
      op.args[0].kind == ArgPlan::Kind::tensor && op.args[0].rows[0] != kNone) {
    const std::int32_t row = op.args[0].rows[0];
    const at::ScalarType wide = target_type(scalar_type_of(slots_.row(row).dtype), p);
    if (name == "aten::native_dropout" && mask_then_widen(name, call.inputs.read(row, wide), call.stack))
      return;
  }
  op.handle->callBoxed(call.stack);
}

void Machine::run_call(std::int32_t index, Precision p, Call& call) {
  const OpPlan& op = plan_of(index);
  if (!op.handle) throw std::runtime_error(op.problem.empty() ? "there is nothing to execute" : op.problem);
  for (const ArgPlan& arg : op.args) {
    if (!arg.written || call.isolated) continue;
    for (const std::int32_t row : arg.rows) {
      if (row == kNone) continue;
      if (!slots_.available(row)) slots_.allocate(row);
      slots_.widen(row, wanted(op, arg, row, p));
    }
  }
  call.stack.reserve(op.args.size());
  for (const ArgPlan& arg : op.args) call.stack.push_back(argument(op, arg, p, call));
  set_generator(index);
  execute(index, p, call);
  for (const c10::IValue& value : call.stack) flatten(value, call.returned);
}

void Machine::keep(const OpPlan& op, Call& call) {
  for (const Call::Mutable& m : call.mutables)
    if (!slots_.holds(m.row, m.tensor)) slots_.store(m.row, m.tensor);
  for (std::size_t k = 0; k < call.returned.size() && k < op.outputs.size(); ++k) {
    const std::int32_t row = op.outputs[k];
    if (row == kNone) continue;
    at::Tensor tensor = call.returned[k];
    if (!tensor.defined())
      throw std::runtime_error("it returned an undefined tensor where it had returned values");
    bool is_argument = false;  // already stored above
    for (const Call::Mutable& m : call.mutables)
      is_argument =
          is_argument || (slots_.row(m.row).slot == slots_.row(row).slot && tensor.is_alias_of(m.tensor));
    if (is_argument) continue;
    if (!slots_.available(row))  // recorded as new memory: it must not share an argument's here
      for (const at::Tensor& arg : call.tensors)
        if (tensor.has_storage() && tensor.is_alias_of(arg)) tensor = tensor.clone();
    slots_.bind(row, tensor);
  }
}

void Machine::isolate(const OpPlan& op, Call& call, StepOutcome& out) const {
  const auto find = [&](std::int32_t row) -> at::Tensor {
    if (row == kNone) return {};
    for (std::size_t k = 0; k < op.outputs.size() && k < call.returned.size(); ++k)
      if (op.outputs[k] == row) return call.returned[k];
    for (const Call::Mutable& m : call.mutables)
      if (same_place(slots_.row(m.row), slots_.row(row))) return m.tensor;
    for (const Call::Mutable& m : call.mutables)
      if (slots_.row(m.row).slot == slots_.row(row).slot) return m.tensor;
    for (std::size_t k = 0; k < op.outputs.size() && k < call.returned.size(); ++k)
      if (op.outputs[k] != kNone && same_place(slots_.row(op.outputs[k]), slots_.row(row)))
        return call.returned[k];
    return {};
  };
  for (const std::int32_t row : op.outputs) out.outputs.push_back(find(row));
  for (const std::int32_t row : op.written) out.written.push_back(find(row));
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

void Machine::substitute(std::int32_t index, StepOutcome& out, bool isolated) {
  const OpRow& row = doc_.ops[static_cast<std::size_t>(index)];
  const OpPlan& op = plan_of(index);
  if (!op.problem.empty()) throw std::runtime_error(op.problem);
  const bool host = (row.flags & kOpHostWrite) != 0;
  if (row.host_data.empty() || op.outputs.empty() || op.outputs[0] == kNone) {
    if (host || !op.outputs.empty() || !op.written.empty())
      throw std::runtime_error(host ? "the bytes of a host write are missing"
                                    : "it can't be executed again and its outputs were not stored");
    return;
  }
  const std::int32_t first = op.outputs[0];
  const at::Tensor values = as_row(slots_.row(first), source_(row.host_data));
  if (isolated) {
    out.outputs = {values};
    out.written = {values};
  } else {
    if (!slots_.available(first)) slots_.allocate(first);
    slots_.widen(first, target_type(values.scalar_type(), precision_of(index)));
    slots_.store(first, values);
    for (const std::int32_t other : op.outputs)
      if (other != kNone && !slots_.available(other))
        throw std::runtime_error("it can't be executed again and only its first output was stored");
  }
  out.ran = host;
  out.substituted = !host;
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
    if (row.flags & (kOpHostWrite | kOpOpaque)) {
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
