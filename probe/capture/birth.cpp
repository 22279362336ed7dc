#include "probe/capture/birth.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include "probe/capture/arguments.h"
#include "probe/observe/tensor_scan.h"

namespace nanquest {
namespace {

bool is_low(at::ScalarType t) {
  return t == at::kHalf || t == at::kBFloat16 || t == at::kFloat8_e4m3fn || t == at::kFloat8_e5m2;
}

/// Autocast would undo the raised precision.
class NoAutocast {
 public:
  NoAutocast() {
    for (int i = 0; i < 2; ++i) {
      before_[i] = at::autocast::is_autocast_enabled(kDevices[i]);
      at::autocast::set_autocast_enabled(kDevices[i], false);
    }
  }
  ~NoAutocast() {
    for (int i = 0; i < 2; ++i) at::autocast::set_autocast_enabled(kDevices[i], before_[i]);
  }
  NoAutocast(const NoAutocast&) = delete;
  NoAutocast& operator=(const NoAutocast&) = delete;

 private:
  static constexpr at::DeviceType kDevices[2] = {at::kCPU, at::kCUDA};
  bool before_[2];
};

at::Tensor raise(const at::Tensor& t, at::ScalarType to) {
  if (!t.defined() || !t.is_floating_point()) return t;
  at::Tensor raised = t.detach().to(to, /*non_blocking=*/false, /*copy=*/true);
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) raised.unsafeGetTensorImpl()->set_wrapped_number(true);
  return raised;
}

c10::IValue raise_value(const c10::IValue& value, at::ScalarType to, bool is_scalar_type) {
  if (value.isTensor()) return raise(value.toTensor(), to);
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& t : value.toTensorVector()) list.push_back(raise(t, to));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const auto& t : value.toOptionalTensorVector())
      list.push_back(t ? std::optional<at::Tensor>(raise(*t, to)) : std::nullopt);
    return list;
  }
  if (is_scalar_type && value.isInt() && at::isFloatingType(static_cast<at::ScalarType>(value.toInt())))
    return static_cast<std::int64_t>(to);
  return value;
}

bool is_scalar_type(const c10::Argument& argument) {
  const std::string type = argument.real_type()->str();
  return type.find("ScalarType") != std::string::npos;
}

OneUp judge(const c10::Stack& results, const std::vector<c10::IValue>& arguments, const OpTraits& op) {
  bool bad = false;
  const auto look = [&](const at::Tensor& t) {
    if (!t.defined() || !t.is_floating_point()) return;
    const auto stats = stats_of(t, false);
    bad = bad || (stats && stats->non_finite() > 0);
  };
  for (const c10::IValue& result : results) for_each_tensor(result, look);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (op.argument_written[i]) for_each_tensor(arguments[i], look);
  return bad ? OneUp::non_finite : OneUp::finite;
}

}  // namespace

OneUp compute_one_up(const OpTraits& op, const std::vector<c10::IValue>& inputs) {
  if (op.seeded) return OneUp::unknown;
  bool low = false, floating = false;
  for (const c10::IValue& input : inputs)
    for_each_tensor(input, [&](const at::Tensor& t) {
      if (!t.defined() || !t.is_floating_point()) return;
      low = low || is_low(t.scalar_type());
      floating = floating || t.scalar_type() == at::kFloat;
    });
  const auto& arguments = op.handle.schema().arguments();
  // A cast from fp32 down to fp16 reads fp32 only: its target is what has to be raised.
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].isInt() && is_scalar_type(arguments[i]))
      low = low || is_low(static_cast<at::ScalarType>(inputs[i].toInt()));
  if (!low && !floating) return OneUp::unknown;
  const at::ScalarType to = low ? at::kFloat : at::kDouble;

  try {
    const at::NoGradGuard no_grad;
    const NoAutocast no_autocast;
    std::vector<c10::IValue> raised;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      raised.push_back(raise_value(inputs[i], to, is_scalar_type(arguments[i])));
    c10::Stack stack(raised.begin(), raised.end());
    op.handle.callBoxed(stack);
    return judge(stack, raised, op);
  } catch (...) {
    return OneUp::unknown;
  }
}

}  // namespace nanquest
