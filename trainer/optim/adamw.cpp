#include "trainer/optim/adamw.h"

#include <ATen/ATen.h>

#include <utility>

namespace nanquest::trainer {

AdamW::AdamW(NamedTensors parameters, const AdamWOptions& options)
    : parameters_(std::move(parameters)), options_(options) {
  for (const auto& [name, p] : parameters_) {
    exp_avg_.push_back(at::zeros_like(p, p.options().requires_grad(false)));
    exp_avg_sq_.push_back(at::zeros_like(p, p.options().requires_grad(false)));
    steps_.push_back(at::zeros({}, p.options().dtype(at::kFloat).requires_grad(false)));
  }
}

void AdamW::step(double lr) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> weights, gradients, m, v, counts;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& p = parameters_[i].second;
    if (!p.grad().defined()) continue;
    weights.push_back(p);
    gradients.push_back(p.grad());
    m.push_back(exp_avg_[i]);
    v.push_back(exp_avg_sq_[i]);
    counts.push_back(steps_[i]);
  }
  if (weights.empty()) return;
  at::_foreach_add_(counts, 1);
  at::_fused_adamw_(weights, gradients, m, v, {}, counts, lr, options_.beta1, options_.beta2,
                    options_.weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
}

void AdamW::scale_gradients(double factor) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const auto& [name, p] : parameters_)
    if (p.grad().defined()) gradients.push_back(p.grad());
  if (!gradients.empty()) at::_foreach_mul_(gradients, factor);
}

void AdamW::clear_gradients() {
  for (auto& [name, p] : parameters_) p.mutable_grad().reset();
}

void AdamW::cast_to_fp32() {
  const at::NoGradGuard no_grad;
  const auto widen = [](at::Tensor t) {
    if (t.scalar_type() != at::kFloat) t.set_data(t.to(at::kFloat));
  };
  for (auto& [name, p] : parameters_) widen(p);
  for (auto* group : {&exp_avg_, &exp_avg_sq_, &steps_})
    for (at::Tensor& t : *group) widen(t);
}

NamedTensors AdamW::state() const {
  NamedTensors all;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const std::string& name = parameters_[i].first;
    all.emplace_back("exp_avg." + name, exp_avg_[i]);
    all.emplace_back("exp_avg_sq." + name, exp_avg_sq_[i]);
    all.emplace_back("step." + name, steps_[i]);
  }
  return all;
}

std::vector<std::string> AdamW::without_gradient() const {
  std::vector<std::string> names;
  for (const auto& [name, p] : parameters_)
    if (!p.grad().defined()) names.push_back(name);
  return names;
}

}  // namespace nanquest::trainer
