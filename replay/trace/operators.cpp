#include "replay/trace/operators.h"

#include <ATen/ops/native_dropout.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <string_view>

namespace nanquest::trace {
namespace {

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view what) {
  for (std::string_view entry : list)
    if (entry == what) return true;
  return false;
}

}  // namespace

bool is_refused(const std::string& name, const std::string& overload) {
  constexpr std::array<std::string_view, 6> names = {"aten::from_file",     "aten::save",
                                                     "aten::_print",        "aten::warn",
                                                     "aten::record_stream", "aten::_pin_memory"};
  // Collectives wait for other processes; jit, profiler and process helpers are no part of a computation.
  constexpr std::array<std::string_view, 6> spaces = {
      "c10d::", "_c10d_functional::", "c10d_functional::", "prim::", "profiler::", "inductor::"};
  for (std::string_view space : spaces)
    if (name.starts_with(space)) return true;
  return contains(names, name) || overload.find("Storage") != std::string::npos;
}

bool keeps_recorded_dtype(const std::string& name, const std::string& argument) {
  constexpr std::array<std::string_view, 3> flags = {"found_inf", "inv_scale", "grad_scale"};
  if (name == "aten::_amp_update_scale_") return true;
  return contains(flags, argument);
}

bool follows_from_mask(const std::string& name) {
  return name == "aten::native_dropout";
}

bool mask_then_widen(const std::string& name, const at::Tensor& wide, const at::Tensor& drawn,
                     std::vector<c10::IValue>& stack) {
  if (!follows_from_mask(name) || stack.size() != 3) return false;
  const double p = stack[1].toDouble();
  const bool train = stack[2].isNone() || stack[2].toBool();
  const at::Tensor mask =
      drawn.defined() ? drawn : std::get<1>(at::native_dropout(stack[0].toTensor(), p, train));
  at::Tensor out = wide.clone();
  if (train && p < 1) out = wide.mul(mask).mul_(1.0 / (1.0 - p));
  if (train && p >= 1) out = at::zeros_like(wide);
  stack.clear();
  stack.emplace_back(out);
  stack.emplace_back(mask);
  return true;
}

}  // namespace nanquest::trace
