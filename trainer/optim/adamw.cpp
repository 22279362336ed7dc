#include "trainer/optim/adamw.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

namespace nanquest::trainer {
namespace {

/// Weights with the same settings.
struct Group {
  std::vector<at::Tensor> weights, gradients, m, v, counts;
};

class AdamW final : public Optimizer {
 public:
  AdamW(NamedTensors parameters, const AdamWOptions& options, const std::vector<MoveRule>& rules)
      : Optimizer(std::move(parameters)), options_(options), rules_(by_rule(rules)) {
    for (const auto& [name, p] : this->parameters()) {
      exp_avg_.push_back(at::zeros_like(p, p.options().requires_grad(false)));
      exp_avg_sq_.push_back(at::zeros_like(p, p.options().requires_grad(false)));
      steps_.push_back(at::zeros({}, p.options().dtype(at::kFloat).requires_grad(false)));
    }
  }

  void step(double lr) override {
    const at::NoGradGuard no_grad;
    for (const auto& [rule, members] : rules_) {
      Group group;
      for (const std::size_t i : members) {
        const at::Tensor& p = parameters()[i].second;
        if (!p.grad().defined()) continue;
        group.weights.push_back(p);
        group.gradients.push_back(p.grad());
        group.m.push_back(exp_avg_[i]);
        group.v.push_back(exp_avg_sq_[i]);
        group.counts.push_back(steps_[i]);
      }
      update(group, lr * rule.lr_factor, rule.weight_decay);
    }
  }

  NamedTensors state() const override {
    NamedTensors all;
    for (std::size_t i = 0; i < parameters().size(); ++i) {
      const std::string& name = parameters()[i].first;
      all.emplace_back("exp_avg." + name, exp_avg_[i]);
      all.emplace_back("exp_avg_sq." + name, exp_avg_sq_[i]);
      all.emplace_back("step." + name, steps_[i]);
    }
    return all;
  }

 private:
  void update(Group& group, double lr, double weight_decay) const {
    if (group.weights.empty()) return;
    at::_foreach_add_(group.counts, 1);
    at::_fused_adamw_(group.weights, group.gradients, group.m, group.v, {}, group.counts, lr, options_.beta1,
                      options_.beta2, weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
  }

  AdamWOptions options_;
  std::vector<std::pair<MoveRule, std::vector<std::size_t>>> rules_;
  std::vector<at::Tensor> exp_avg_, exp_avg_sq_, steps_;
};

}  // namespace

void declare(SettingList& list, AdamWOptions& o) {
  list.group("Optimizer");
  list.add("weight-decay", o.weight_decay, "on matrices; not on norms and biases");
  list.add("beta1", o.beta1, "of AdamW");
  list.add("beta2", o.beta2, "of AdamW");
  list.add("adam-eps", o.eps, "of AdamW");
  list.check([&o] { return check(o); });
}

Status check(const AdamWOptions& o) {
  const auto is_beta = [](double b) { return b >= 0 && b < 1; };
  if (is_beta(o.beta1) && is_beta(o.beta2)) return {};
  return Error{ErrorCode::usage, "beta1 and beta2 must be at least 0 and below 1", "try 0.9 and 0.999"};
}

Result<std::unique_ptr<Optimizer>> make_adamw(NamedTensors parameters, const AdamWOptions& options) {
  if (Status s = check(options); !s) return s.error();
  Result<std::vector<MoveRule>> rules = move_rules(parameters, options.groups, options.weight_decay);
  if (!rules) return rules.error();
  return std::unique_ptr<Optimizer>(std::make_unique<AdamW>(std::move(parameters), options, *rules));
}

}  // namespace nanquest::trainer
