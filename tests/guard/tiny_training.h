/// A small real training for the guard's tests: linear, batch norm, relu, dropout, linear, cross entropy,
/// AdamW; everything a step mutates is in here.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace nanquest::guard::testing {

struct Batch {
  at::Tensor x, y;
  std::vector<std::string> ids;
};

class TinyTraining {
 public:
  TinyTraining() {
    at::manual_seed(1234);
    add("fc1.weight", at::randn({16, 6}) * 0.4);
    add("fc1.bias", at::zeros({16}));
    add("norm.weight", at::ones({16}));
    add("norm.bias", at::zeros({16}));
    add("fc2.weight", at::randn({3, 16}) * 0.4);
    add("fc2.bias", at::zeros({3}));
    running_mean = at::zeros({16});
    running_var = at::ones({16});
  }

  /// Forward, loss, backward of the scaled loss; also moves host state, as a data pipeline would.
  at::Tensor compute(const Batch& batch) {
    ++position;
    at::Tensor h = at::linear(batch.x, parameters[0], parameters[1]);
    h = at::batch_norm(h, parameters[2], parameters[3], running_mean, running_var, true, 0.1, 1e-5, false);
    h = at::dropout(at::relu(h), 0.3, true);
    const at::Tensor loss = at::cross_entropy_loss(at::linear(h, parameters[4], parameters[5]), batch.y);
    (loss * loss_scale).backward();
    return loss;
  }

  /// L2 norm of all gradients, in fp64, by ATen.
  double gradient_norm() const {
    double sum = 0;
    for (const at::Tensor& p : parameters) sum += p.grad().to(at::kDouble).square().sum().item<double>();
    return std::sqrt(sum);
  }

  /// Clips to norm 1, then AdamW.
  void update() {
    const double clip = std::min(1.0, 1.0 / (gradient_norm() + 1e-6));
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& p : parameters) gradients.push_back(p.grad().mul_(clip));
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> values;
    for (const at::Tensor& p : parameters) values.push_back(p.detach());
    for (at::Tensor& s : steps) s.add_(1);
    at::_fused_adamw_(values, gradients, exp_avg, exp_avg_sq, {}, steps, lr, 0.9, 0.999, 0.01, 1e-8, false,
                      false);
  }

  /// Every tensor that must be the same in two runs that are the same, the random generator included.
  std::vector<std::pair<std::string, at::Tensor>> state() const {
    std::vector<std::pair<std::string, at::Tensor>> all;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      all.emplace_back(names[i], parameters[i].detach());
      all.emplace_back("exp_avg." + names[i], exp_avg[i]);
      all.emplace_back("exp_avg_sq." + names[i], exp_avg_sq[i]);
      all.emplace_back("step." + names[i], steps[i]);
    }
    all.emplace_back("running_mean", running_mean);
    all.emplace_back("running_var", running_var);
    all.emplace_back("generator", at::detail::getDefaultCPUGenerator().get_state());
    all.emplace_back("position", at::full({}, position, at::kLong));
    return all;
  }

  std::vector<std::pair<std::string, at::Tensor>> moments() const {
    std::vector<std::pair<std::string, at::Tensor>> all;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      all.emplace_back("exp_avg." + names[i], exp_avg[i]);
      all.emplace_back("exp_avg_sq." + names[i], exp_avg_sq[i]);
    }
    return all;
  }

  void clear_gradients() {
    for (at::Tensor& p : parameters) p.mutable_grad().reset();
  }

  std::vector<std::string> names;
  std::vector<at::Tensor> parameters, exp_avg, exp_avg_sq, steps;
  at::Tensor running_mean, running_var;
  std::int64_t position = 0;
  double loss_scale = 1, lr = 1e-2;

 private:
  void add(const std::string& name, const at::Tensor& value) {
    names.push_back(name);
    parameters.push_back(value.clone().requires_grad_(true));
    exp_avg.push_back(at::zeros_like(value));
    exp_avg_sq.push_back(at::zeros_like(value));
    steps.push_back(at::zeros({}));
  }
};

/// Batches that depend only on `count`; the global generator stays as it was.
inline std::vector<Batch> batches(int count) {
  at::Generator generator = at::detail::getDefaultCPUGenerator().clone();
  generator.set_current_seed(99);
  std::vector<Batch> all;
  for (int i = 0; i < count; ++i) {
    at::Tensor x = at::randn({8, 6}, generator);
    at::Tensor y = at::randint(3, {8}, generator, at::kLong);
    all.push_back({x, y, {"sample-" + std::to_string(i)}});
  }
  return all;
}

/// Name of the first tensor whose bits differ, "" if none do.
inline std::string first_difference(const std::vector<std::pair<std::string, at::Tensor>>& a,
                                    const std::vector<std::pair<std::string, at::Tensor>>& b) {
  if (a.size() != b.size()) return "sizes";
  for (std::size_t i = 0; i < a.size(); ++i) {
    const at::Tensor x = a[i].second.contiguous(), y = b[i].second.contiguous();
    if (x.nbytes() != y.nbytes() || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) != 0)
      return a[i].first;
  }
  return "";
}

}  // namespace nanquest::guard::testing
