#include "replay/trace/recorded_results.h"

#include <ATen/Functions.h>

#include <stdexcept>

#include "probe/tensor/tensor_scan.h"

namespace nanquest::trace {
namespace {

/// A stored tensor's bytes seen as what `row` describes, contiguous. Throws if there are too few.
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

}  // namespace

at::Tensor RecordedResults::read(TensorId row, const std::string& path) const {
  at::Tensor values;
  try {
    values = source_(path);
  } catch (const std::exception&) {  // views of known values are not stored, and older files hold less
    return {};
  }
  return as_row(get(doc_, row), values);
}

std::vector<RecordedResults::Value> RecordedResults::of(OpId id, const OpPlan& op) const {
  const OpRow& row = get(doc_, id);
  std::vector<Value> found;
  if (row.host_data.empty()) return found;
  if (row.flags & kOpHostWrite) {
    if (!op.outputs.empty() && op.outputs[0])
      found.push_back({op.outputs[0], as_row(get(doc_, op.outputs[0]), source_(row.host_data))});
    return found;
  }
  const std::string folder = row.host_data.substr(0, row.host_data.rfind('/') + 1);
  const auto add = [&](TensorId tensor, const std::string& name) {
    if (!tensor) return;
    if (const at::Tensor values = read(tensor, folder + name); values.defined())
      found.push_back({tensor, values});
  };
  for (std::size_t k = 0; k < op.outputs.size(); ++k) add(op.outputs[k], std::to_string(k));
  for (std::size_t k = 0; k < op.written.size(); ++k) add(op.written[k], "w" + std::to_string(k));
  return found;
}

}  // namespace nanquest::trace
