#include "replay/trace/operators.h"

#include <ATen/ExpandUtils.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/native_dropout.h>
#include <ATen/ops/zeros_like.h>

#include <array>
#include <string_view>

#include "probe/trace/op_facts.h"

namespace nanquest::trace {
namespace {

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& list, std::string_view what) {
  for (std::string_view entry : list)
    if (entry == what) return true;
  return false;
}

constexpr const char* kReferences = "nanquest_reference::";

}  // namespace

bool is_refused(const std::string& name, const std::string& overload) {
  constexpr std::array<std::string_view, 5> names = {"aten::from_file", "aten::save", "aten::_print",
                                                     "aten::warn", "aten::_pin_memory"};
  // Collectives wait for other processes; jit, profiler and process helpers are no part of a computation.
  constexpr std::array<std::string_view, 6> spaces = {
      "c10d::", "_c10d_functional::", "c10d_functional::", "prim::", "profiler::", "inductor::"};
  for (std::string_view space : spaces)
    if (name.starts_with(space)) return true;
  return contains(names, name) || is_for_the_allocator(name) || overload.find("Storage") != std::string::npos;
}

std::string reference_name(const std::string& name) {
  std::string mangled = name;
  for (auto at = mangled.find("::"); at != std::string::npos; at = mangled.find("::"))
    mangled.replace(at, 2, "__");
  return kReferences + mangled;
}

bool is_reference(const std::string& name) {
  return name.starts_with(kReferences);
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

at::Tensor scaled_product(const at::Tensor& a, const at::Tensor& scale_a, const at::Tensor& b,
                          const at::Tensor& scale_b, const at::Tensor& bias) {
  const auto fits = [](const at::Tensor& payload, const at::Tensor& scale) {
    return payload.defined() && payload.dim() == 2 && scale.defined() &&
           (scale.numel() == 1 || at::is_expandable_to(scale.sizes(), payload.sizes()));
  };
  if (!fits(a, scale_a) || !fits(b, scale_b)) return {};
  const at::Tensor product = at::mm(at::mul(a, scale_a), at::mul(b, scale_b));
  return bias.defined() ? at::add(product, bias) : product;
}

bool compute_wide(const std::string& name, std::vector<c10::IValue>& stack) {
  if (name != "aten::_scaled_mm" || stack.size() < 6) return false;
  for (const std::size_t i : {0, 1, 2, 3})
    if (!stack[i].isTensor()) return false;
  const at::Tensor a = stack[0].toTensor(), bias = stack[4].isTensor() ? stack[4].toTensor() : at::Tensor();
  if (c10::elementSize(a.scalar_type()) < 4) return false;
  const at::Tensor product =
      scaled_product(a, stack[2].toTensor(), stack[1].toTensor(), stack[3].toTensor(), bias);
  if (!product.defined()) return false;
  stack.clear();
  stack.emplace_back(product.to(a.scalar_type()));
  return true;
}

}  // namespace nanquest::trace
