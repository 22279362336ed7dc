// Machine: ops that can't be executed again get their recorded results.
#include <ATen/Functions.h>

#include <stdexcept>

#include "probe/tensor/tensor_scan.h"
#include "replay/trace/dtype_map.h"
#include "replay/trace/machine.h"

namespace nanquest::trace {

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

at::Tensor Machine::stored(TensorId row, const std::string& path) const {
  at::Tensor values;
  try {
    values = source_(path);
  } catch (const std::exception&) {  // views of known values are not stored, and older files hold less
    return {};
  }
  return as_row(slots_.row(row), values);
}

std::vector<Machine::Stored> Machine::stored_values(OpId id) const {
  const OpRow& row = get(doc_, id);
  const OpPlan& op = plan_of(id);
  std::vector<Stored> found;
  if (row.host_data.empty()) return found;
  if (row.flags & kOpHostWrite) {
    if (!op.outputs.empty() && op.outputs[0])
      found.push_back({op.outputs[0], as_row(slots_.row(op.outputs[0]), source_(row.host_data))});
    return found;
  }
  const std::string folder = row.host_data.substr(0, row.host_data.rfind('/') + 1);
  const auto add = [&](TensorId tensor, const std::string& name) {
    if (!tensor) return;
    if (const at::Tensor values = stored(tensor, folder + name); values.defined())
      found.push_back({tensor, values});
  };
  for (std::size_t k = 0; k < op.outputs.size(); ++k) add(op.outputs[k], std::to_string(k));
  for (std::size_t k = 0; k < op.written.size(); ++k) add(op.written[k], "w" + std::to_string(k));
  return found;
}

void Machine::substitute(OpId id, StepOutcome& out, bool isolated) {
  const OpRow& row = get(doc_, id);
  const OpPlan& op = plan_of(id);
  const bool host = (row.flags & kOpHostWrite) != 0;
  if (!op.sound) throw std::runtime_error(op.problem);
  const std::vector<Stored> values = stored_values(id);
  if (host && values.empty()) throw std::runtime_error("the bytes of a host write are missing");

  // A result must not keep its old value although the op wrote it.
  for (const TensorId written : op.written) {
    bool covered = !written;
    for (const Stored& s : values) covered = covered || slots_.row(s.row).slot == slots_.row(written).slot;
    if (!covered && !(row.flags & kOpUninitialised))
      throw std::runtime_error(
          op.problem.empty() ? "it can't be executed again and what it wrote was not stored" : op.problem);
  }
  if (isolated) {
    const auto find = [&](TensorId wanted) -> at::Tensor {
      for (const Stored& s : values)
        if (s.row == wanted) return s.tensor;
      for (const Stored& s : values)
        if (wanted && slots_.row(s.row).slot == slots_.row(wanted).slot) return s.tensor;
      return {};
    };
    for (const TensorId wanted : op.outputs) out.outputs.push_back(find(wanted));
    for (const TensorId wanted : op.written) out.written.push_back(find(wanted));
  } else {
    for (const Stored& s : values) {
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
