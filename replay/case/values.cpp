#include "replay/case/values.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstdio>

#include "probe/numerics/format.h"
#include "probe/tensor/tensor_scan.h"
#include "replay/lab/call_again.h"

namespace nanquest {
namespace {

std::optional<Format> format_of_tensor(const at::Tensor& t) {
  const auto type = dtype_of(t.scalar_type());
  return type ? format_of(*type) : std::nullopt;
}

at::ScalarType type_of(Precision precision) {
  return precision == Precision::fp64 ? at::kDouble : at::kFloat;
}

}  // namespace

std::string format_name(const at::Tensor& tensor) {
  const auto f = format_of_tensor(tensor);
  return f ? std::string(info(*f).name) : "";
}

std::optional<double> format_max(const at::Tensor& tensor) {
  const auto f = format_of_tensor(tensor);
  if (!f) return std::nullopt;
  return info(*f).max_finite;
}

std::optional<double> format_tiny(const at::Tensor& tensor) {
  const auto f = format_of_tensor(tensor);
  if (!f) return std::nullopt;
  return info(*f).min_normal;
}

at::Tensor wide(const at::Tensor& tensor) {
  const at::Tensor here = tensor.detach().to(at::kCPU);
  return here.is_complex() ? here.to(at::kComplexDouble).abs() : here.to(at::kDouble);
}

bool can_be_bad(const at::Tensor& tensor) {
  return tensor.is_floating_point() || tensor.is_complex();
}

at::Tensor bad_mask(const at::Tensor& tensor) {
  return at::logical_not(at::isfinite(wide(tensor)));
}

std::int64_t count_true(const at::Tensor& mask) {
  return mask.numel() == 0 ? 0 : mask.sum().item<std::int64_t>();
}

bool all_finite(const at::Tensor& tensor) {
  return !tensor.defined() || !can_be_bad(tensor) || count_true(bad_mask(tensor)) == 0;
}

double finite_amax(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  const at::Tensor w = wide(tensor);
  return at::where(at::isfinite(w), w.abs(), at::zeros({}, w.options())).max().item<double>();
}

std::optional<at::Tensor> broadcast(const at::Tensor& tensor, at::IntArrayRef shape) {
  try {
    return tensor.expand(shape);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

at::Tensor unexpanded(at::Tensor tensor) {
  for (std::int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.size(d) > 1 && tensor.stride(d) == 0) tensor = tensor.narrow(d, 0, 1);
  return tensor;
}

std::optional<std::size_t> argument_position(const OpRow& op, std::string_view name) {
  const auto handle = c10::Dispatcher::singleton().findOp({op.name, op.overload});
  if (!handle) return std::nullopt;
  const std::vector<c10::Argument>& arguments = handle->schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name() == name) return i;
  return std::nullopt;
}

std::string argument_name(const OpRow& op, std::size_t position) {
  const auto handle = c10::Dispatcher::singleton().findOp({op.name, op.overload});
  return handle && position < handle->schema().arguments().size()
             ? handle->schema().arguments()[position].name()
             : "";
}

c10::IValue argument(const Case& c, std::int32_t op, std::string_view name) {
  const auto position = c.row(op) ? argument_position(*c.row(op), name) : std::nullopt;
  const std::vector<c10::IValue>& arguments = c.values(op).arguments;
  return position && *position < arguments.size() ? arguments[*position] : c10::IValue();
}

at::Tensor tensor_of(const c10::IValue& value) {
  return value.isTensor() ? value.toTensor() : at::Tensor();
}

at::Tensor operand_of(const c10::IValue& value) {
  return value.isScalar() ? at::scalar_tensor(value.toScalar(), at::TensorOptions(at::kDouble))
                          : tensor_of(value);
}

std::vector<at::Tensor> tensors_in(const std::vector<c10::IValue>& arguments) {
  std::vector<at::Tensor> found;
  for (const c10::IValue& v : arguments) {
    if (v.isTensor() && v.toTensor().defined()) found.push_back(v.toTensor());
    if (v.isTensorList())
      for (const at::Tensor& t : v.toTensorVector())
        if (t.defined()) found.push_back(t);
  }
  return found;
}

bool goes_into_a_logarithm(const Case& c, std::int32_t op) {
  for (const std::int32_t reader : c.readers_within(op, 4)) {
    const std::string& name = c.row(reader)->name;
    if (name == "aten::log" || name == "aten::log2" || name == "aten::log10") return true;
  }
  return false;
}

bool reads_infinity(const OpValues& values) {
  for (const at::Tensor& t : tensors_in(values.arguments))
    if (t.is_floating_point() && count_true(at::isinf(wide(t))) > 0) return true;
  return false;
}

std::optional<std::vector<at::Tensor>> evaluate_all(const OpRow& op,
                                                    const std::vector<c10::IValue>& arguments,
                                                    Precision precision) {
  const CallAgain call(op, arguments);
  auto results = precision == Precision::as_recorded ? call.as_it_was() : call.in(type_of(precision));
  if (!results) return std::nullopt;
  return told_by(std::move(results));
}

std::optional<at::Tensor> evaluate(const OpRow& op, const std::vector<c10::IValue>& arguments,
                                   Precision precision) {
  const auto outputs = evaluate_all(op, arguments, precision);
  if (!outputs || outputs->empty() || !outputs->front().defined()) return std::nullopt;
  return outputs->front();
}

}  // namespace nanquest
