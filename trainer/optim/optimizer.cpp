#include "trainer/optim/optimizer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <ranges>
#include <utility>

namespace nanquest::trainer {

Optimizer::Optimizer(NamedTensors parameters) : parameters_(std::move(parameters)) {}

void Optimizer::scale_gradients(double factor) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const auto& [name, p] : parameters_)
    if (p.grad().defined()) gradients.push_back(p.grad());
  if (!gradients.empty()) at::_foreach_mul_(gradients, factor);
}

void Optimizer::clear_gradients() {
  for (auto& [name, p] : parameters_) p.mutable_grad().reset();
}

void Optimizer::cast_to_fp32() {
  const at::NoGradGuard no_grad;
  for (const NamedTensors& group : {parameters_, state()})
    for (at::Tensor t : group | std::views::values)
      if (t.is_floating_point() && c10::elementSize(t.scalar_type()) < sizeof(float))
        t.set_data(t.to(at::kFloat));
}

std::vector<std::string> Optimizer::without_gradient() const {
  std::vector<std::string> names;
  for (const auto& [name, p] : parameters_)
    if (!p.grad().defined()) names.push_back(name);
  return names;
}

}  // namespace nanquest::trainer
