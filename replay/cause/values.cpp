#include "replay/cause/values.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>
#include <cstdio>

#include "probe/numerics/format.h"
#include "probe/observe/op_traits.h"
#include "probe/tensor/one_up.h"

namespace nanquest {
namespace {

std::optional<Format> format_of_tensor(const at::Tensor& t) {
  switch (t.scalar_type()) {
    case at::kDouble:
      return Format::fp64;
    case at::kFloat:
      return Format::fp32;
    case at::kHalf:
      return Format::fp16;
    case at::kBFloat16:
      return Format::bf16;
    case at::kFloat8_e4m3fn:
      return Format::fp8_e4m3;
    case at::kFloat8_e5m2:
      return Format::fp8_e5m2;
    default:
      return std::nullopt;
  }
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
  return tensor.detach().to(at::kCPU).to(at::kDouble);
}

at::Tensor bad_mask(const at::Tensor& tensor) {
  return at::logical_not(at::isfinite(wide(tensor)));
}

std::int64_t count_true(const at::Tensor& mask) {
  return mask.numel() == 0 ? 0 : mask.sum().item<std::int64_t>();
}

bool all_finite(const at::Tensor& tensor) {
  return !tensor.defined() || !tensor.is_floating_point() || count_true(bad_mask(tensor)) == 0;
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

std::optional<std::size_t> argument_position(const OpRow& op, std::string_view name) {
  const auto handle = c10::Dispatcher::singleton().findOp({op.name, op.overload});
  if (!handle) return std::nullopt;
  const std::vector<c10::Argument>& arguments = handle->schema().arguments();
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].name() == name) return i;
  return std::nullopt;
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

bool reads_infinity(const OpValues& values) {
  for (const at::Tensor& t : tensors_in(values.arguments))
    if (t.is_floating_point() && count_true(at::isinf(wide(t))) > 0) return true;
  return false;
}

std::string count_text(std::int64_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::string number_text(double value) {
  char text[32];
  const bool whole = value == std::floor(value) && std::abs(value) < 1e6;
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%.3g", value);
  return text;
}

std::optional<at::Tensor> evaluate(const OpRow& op, const std::vector<c10::IValue>& arguments,
                                   Precision precision) {
  try {
    const auto handle = c10::Dispatcher::singleton().findOp({op.name, op.overload});
    if (!handle || handle->schema().arguments().size() != arguments.size()) return std::nullopt;
    const std::vector<bool> written = traits_of(*handle).argument_written;
    const auto results =
        run_raised(*handle, written, raised(handle->schema(), written, arguments, type_of(precision)));
    if (!results || results->returned.empty() || !results->returned[0].defined()) return std::nullopt;
    return results->returned[0].detach().clone();
  } catch (const std::exception&) {
    return std::nullopt;  // no kernel in this precision: the caller says that it could not be checked
  }
}

}  // namespace nanquest
