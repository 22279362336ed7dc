#include "replay/lab/region_elsewhere.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "probe/tensor/tensor_scan.h"
#include "replay/trace/attention.h"

namespace nanquest::region {
namespace {

/// The row of a result that is a tensor. Sizes that only the run knows are as in `like`.
std::optional<TensorRow> row_of(const Json& told, const at::Tensor& like) {
  if (!told.is_object()) return std::nullopt;
  const auto type = dtype_of(type_named(told.at("dtype").get<std::string>()));
  if (!type) return std::nullopt;
  TensorRow row;
  row.dtype = *type;
  for (const Json& size : told.at("sizes")) {
    const auto d = static_cast<std::int64_t>(row.sizes.size());
    row.sizes.push_back(!size.is_null() ? size.get<std::int64_t>() : d < like.dim() ? like.size(d) : 1);
  }
  return row;
}

void attend(const c10::OperatorHandle& op, const Json& told, std::int64_t draw,
            std::vector<c10::IValue>& stack) {
  const auto first =
      std::find_if(stack.begin(), stack.end(), [](const c10::IValue& v) { return v.isTensor(); });
  std::vector<std::optional<TensorRow>> rows;
  std::vector<const TensorRow*> outputs;
  outputs.reserve(told.size());
  for (const Json& result : told) rows.push_back(row_of(result, first->toTensor()));
  for (const auto& row : rows) outputs.push_back(row ? &*row : nullptr);
  if (!trace::compute_attention(op.schema().name(), op.schema(), outputs, draw + 1, stack))
    throw std::runtime_error(op.schema().name() + " has a row of which every key is masked");
  for (std::size_t i = 0; i < told.size() && i < stack.size(); ++i)
    if (told[i].is_number_integer()) stack[i] = told[i].get<std::int64_t>();
}

at::Tensor widened(const at::Tensor& t) {
  return t.defined() && t.is_floating_point() && c10::elementSize(t.scalar_type()) < 4 ? t.to(at::kFloat) : t;
}

/// In fp32, and rounded to the format that the graph says. Operators that write their inputs are left alone:
/// they would write a copy.
bool rounded(const c10::OperatorHandle& op, const Json& told, std::vector<c10::IValue> arguments,
             std::vector<c10::IValue>& stack) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = op.schema().arguments()[i].alias_info();
    if (alias && alias->isWrite()) return false;
    if (op.schema().arguments()[i].name() == "half_to_float") arguments[i] = false;  // it is float now
    if (arguments[i].isTensor()) arguments[i] = widened(arguments[i].toTensor());
    if (!arguments[i].isTensorList()) continue;
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : arguments[i].toTensorVector()) list.push_back(widened(t));
    arguments[i] = list;
  }
  op.callBoxed(arguments);
  for (std::size_t i = 0; i < arguments.size() && i < told.size(); ++i)
    if (arguments[i].isTensor() && arguments[i].toTensor().is_floating_point() && told[i].is_object())
      arguments[i] = arguments[i].toTensor().to(type_named(told[i].at("dtype").get<std::string>()));
  stack = std::move(arguments);
  return true;
}

}  // namespace

bool call_elsewhere(const c10::OperatorHandle& op, const Json& told, std::int64_t draw,
                    std::vector<c10::IValue>& stack) {
  if (trace::is_fused_attention(op.schema().name())) {
    attend(op, told, draw, stack);
    return false;
  }
  const std::vector<c10::IValue> arguments = stack;
  try {
    op.callBoxed(stack);
    return true;
  } catch (const c10::Error& error) {
    const std::string why = error.what_without_backtrace();
    try {
      if (rounded(op, told, arguments, stack)) return false;
    } catch (const c10::Error&) {  // the first error says more
    }
    throw std::runtime_error(why);
  }
}

}  // namespace nanquest::region
