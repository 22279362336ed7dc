#include "probe/tensor/one_up.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <utility>

#include "probe/tensor/each_tensor.h"
#include "probe/tensor/sparse_values.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

bool is_scalar_type(const c10::Argument& argument) {
  return argument.real_type()->repr_str().find("ScalarType") != std::string::npos;
}

at::Tensor raise(const at::Tensor& t, at::ScalarType to, bool written) {
  if (!t.defined()) return t;
  if (!t.is_floating_point()) return written ? t.detach().clone() : t;
  at::Tensor up = t.detach().to(to, /*non_blocking=*/false, /*copy=*/true);
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) up.unsafeGetTensorImpl()->set_wrapped_number(true);
  return up;
}

}  // namespace

FormatsUsed::FormatsUsed(const c10::FunctionSchema& schema, const std::vector<c10::IValue>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    each_tensor(inputs[i], [&](const at::Tensor& t) {
      if (t.defined()) add(t.scalar_type());
    });
    // A cast from fp32 down to fp16 reads only fp32: its target has to be raised.
    if (inputs[i].isInt() && is_scalar_type(schema.arguments()[i]))
      add(static_cast<at::ScalarType>(inputs[i].toInt()));
  }
}

void FormatsUsed::add(at::ScalarType type) {
  if (type == at::kBFloat16)
    brain_ = true;
  else if (c10::isReducedFloatingType(type))
    narrow_ = true;
  else if (type == at::kFloat)
    single_ = true;
}

std::optional<at::ScalarType> FormatsUsed::one_up() const {
  if (narrow_) return at::kFloat;
  if (brain_ || single_) return at::kDouble;
  return std::nullopt;
}

std::vector<c10::IValue> raised(const c10::FunctionSchema& schema, const std::vector<bool>& argument_written,
                                const std::vector<c10::IValue>& inputs, at::ScalarType to,
                                const std::function<at::Tensor(const at::Tensor&)>& instead) {
  std::vector<c10::IValue> up;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const c10::IValue& value = inputs[i];
    const auto one = [&](const at::Tensor& t) {
      const at::Tensor other = instead && t.defined() ? instead(t) : at::Tensor();
      return raise(other.defined() ? other : t, to, argument_written[i]);
    };
    if (value.isTensor()) {
      up.emplace_back(one(value.toTensor()));
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& t : value.toTensorVector()) list.push_back(one(t));
      up.emplace_back(std::move(list));
    } else if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const auto& t : value.toOptionalTensorVector())
        list.push_back(t ? std::optional<at::Tensor>(one(*t)) : std::nullopt);
      up.emplace_back(std::move(list));
    } else if (value.isInt() && is_scalar_type(schema.arguments()[i]) &&
               at::isFloatingType(static_cast<at::ScalarType>(value.toInt()))) {
      up.emplace_back(static_cast<std::int64_t>(to));
    } else {
      up.push_back(value);
    }
  }
  return up;
}

std::optional<OpResults> run_raised(const c10::OperatorHandle& op, const std::vector<bool>& argument_written,
                                    std::vector<c10::IValue> arguments) {
  // A kernel takes its arguments from the stack without a check of their number.
  if (op.schema().arguments().size() != arguments.size() || argument_written.size() != arguments.size())
    return std::nullopt;
  try {
    const at::NoGradGuard no_grad;
    // Autocast would undo the raised precision.
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
    c10::Stack stack(arguments.begin(), arguments.end());
    op.callBoxed(stack);
    OpResults results;
    for (const c10::IValue& returned : stack)
      each_tensor(returned, [&](const at::Tensor& t) { results.returned.push_back(t); });
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (argument_written[i])
        each_tensor(arguments[i], [&](const at::Tensor& t) { results.written.push_back(t); });
    return results;
  } catch (...) {
    return std::nullopt;
  }
}

OneUp one_up_of(const OpResults& results) {
  for (const auto* tensors : {&results.returned, &results.written})
    for (const at::Tensor& t : *tensors) {
      if (!t.defined() || !t.is_floating_point()) continue;
      const at::Tensor values = values_standing_for(t);
      const auto stats = stats_of(values.defined() ? values : t, /*hash=*/false);
      if (!stats) return OneUp::unknown;
      if (stats->non_finite() > 0) return OneUp::non_finite;
    }
  return OneUp::finite;
}

}  // namespace nanquest
