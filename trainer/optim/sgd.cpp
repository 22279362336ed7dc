#include "trainer/optim/sgd.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace nanquest::trainer {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(NamedTensors parameters, const SgdOptions& options, const std::vector<MoveRule>& rules)
      : Optimizer(std::move(parameters)), options_(options), rules_(by_rule(rules)) {
    if (options_.momentum == 0) return;
    for (const auto& [name, p] : this->parameters())
      momentum_.push_back(at::zeros_like(p, p.options().requires_grad(false)));
  }

  void step(double lr) override {
    const at::NoGradGuard no_grad;
    for (const auto& [rule, members] : rules_) {
      std::vector<at::Tensor> weights, gradients, momentum;
      for (const std::size_t i : members) {
        const at::Tensor& p = parameters()[i].second;
        if (!p.grad().defined()) continue;
        weights.push_back(p);
        gradients.push_back(p.grad());
        if (!momentum_.empty()) momentum.push_back(momentum_[i]);
      }
      if (weights.empty()) continue;
      // With momentum starting at zero, the first step does not differ from the others.
      at::_fused_sgd_(weights, gradients, momentum, rule.weight_decay, options_.momentum, lr * rule.lr_factor,
                      /*dampening=*/0, options_.nesterov, /*maximize=*/false, /*is_first_step=*/false);
    }
  }

  NamedTensors state() const override {
    NamedTensors all;
    for (std::size_t i = 0; i < momentum_.size(); ++i)
      all.emplace_back("momentum_buffer." + parameters()[i].first, momentum_[i]);
    return all;
  }

 private:
  SgdOptions options_;
  std::vector<std::pair<MoveRule, std::vector<std::size_t>>> rules_;
  std::vector<at::Tensor> momentum_;
};

}  // namespace

void declare(SettingList& list, SgdOptions& o) {
  list.group("Optimizer");
  list.add("momentum", o.momentum, "of SGD");
  list.add("nesterov", o.nesterov, "SGD looks ahead along its momentum");
  list.check([&o] { return check(o); });
}

Status check(const SgdOptions& o) {
  if (!(o.momentum >= 0 && o.momentum < 1))
    return Error{ErrorCode::usage, "momentum must be at least 0 and below 1", "try 0.9"};
  if (o.nesterov && o.momentum == 0)
    return Error{ErrorCode::usage, "nesterov needs a momentum above 0", "try --momentum 0.9"};
  return {};
}

Result<std::unique_ptr<Optimizer>> make_sgd(NamedTensors parameters, const SgdOptions& options) {
  if (Status s = check(options); !s) return s.error();
  Result<std::vector<MoveRule>> rules = move_rules(parameters, options.groups, options.weight_decay);
  if (!rules) return rules.error();
  return std::unique_ptr<Optimizer>(std::make_unique<Sgd>(std::move(parameters), options, *rules));
}

}  // namespace nanquest::trainer
