/// A small GPT of ATen functions, so that a step costs as much as in a real training loop.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace nanquest::bench {

class Gpt {
 public:
  Gpt(std::int64_t width, std::int64_t depth, std::int64_t rows, std::int64_t tokens)
      : width_(width), depth_(depth) {
    at::manual_seed(1);
    const double init = 0.02;
    add("embed.weight", at::randn({256, width}) * init);
    add("position.weight", at::randn({tokens, width}) * init);
    for (std::int64_t i = 0; i < depth; ++i) {
      const std::string block = "blocks." + std::to_string(i) + ".";
      add(block + "norm1.weight", at::ones({width}));
      add(block + "norm1.bias", at::zeros({width}));
      add(block + "qkv.weight", at::randn({3 * width, width}) * init);
      add(block + "qkv.bias", at::zeros({3 * width}));
      add(block + "proj.weight", at::randn({width, width}) * init);
      add(block + "proj.bias", at::zeros({width}));
      add(block + "norm2.weight", at::ones({width}));
      add(block + "norm2.bias", at::zeros({width}));
      add(block + "fc1.weight", at::randn({4 * width, width}) * init);
      add(block + "fc1.bias", at::zeros({4 * width}));
      add(block + "fc2.weight", at::randn({width, 4 * width}) * init);
      add(block + "fc2.bias", at::zeros({width}));
    }
    add("norm.weight", at::ones({width}));
    add("norm.bias", at::zeros({width}));
    x = at::randint(256, {rows, tokens}, at::kLong);
    y = at::randint(256, {rows, tokens}, at::kLong);
    gain = at::ones({1});
  }

  /// Forward and backward; the loss is returned. `gain` is part of the batch: Inf in it spoils the step.
  at::Tensor compute() {
    const std::int64_t rows = x.size(0), tokens = x.size(1), heads = std::max<std::int64_t>(1, width_ / 32);
    at::Tensor h = at::embedding(parameters[0], x) + parameters[1];
    for (std::int64_t i = 0; i < depth_; ++i) {
      const at::Tensor* p = &parameters[static_cast<std::size_t>(2 + 12 * i)];
      const at::Tensor qkv = at::linear(at::layer_norm(h, {width_}, p[0], p[1]), p[2], p[3])
                                 .reshape({rows, tokens, 3, heads, width_ / heads})
                                 .permute({2, 0, 3, 1, 4});
      const at::Tensor mixed = at::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0.0, true);
      h = h + at::linear(mixed.transpose(1, 2).reshape({rows, tokens, width_}), p[4], p[5]);
      const at::Tensor wide = at::linear(at::layer_norm(h, {width_}, p[6], p[7]), p[8], p[9]);
      h = h + at::linear(at::gelu(wide), p[10], p[11]);
    }
    h = at::layer_norm(h, {width_}, parameters[parameters.size() - 2], parameters.back()) * gain;
    const at::Tensor logits = at::linear(h, parameters[0]);
    const at::Tensor loss = at::cross_entropy_loss(logits.reshape({-1, 256}), y.reshape({-1}));
    loss.backward();
    return loss;
  }

  void clear_gradients() {
    for (at::Tensor& p : parameters) p.mutable_grad().reset();
  }

  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& p : parameters) all.push_back(p.grad());
    return all;
  }

  /// Multiplies the gradients, if it is needed, and updates.
  void update(double clip) {
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> g = gradients(), values;
    if (clip < 1) at::_foreach_mul_(g, clip);
    for (const at::Tensor& p : parameters) values.push_back(p.detach());
    at::_foreach_add_(steps, 1);
    at::_fused_adamw_(values, g, exp_avg, exp_avg_sq, {}, steps, 1e-4, 0.9, 0.95, 0.1, 1e-8, false, false);
  }

  /// The clip coefficient as training loops get it.
  double usual_clip(double max_norm) const {
    const at::NoGradGuard no_grad;
    const double norm = at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients(), 2))).item<double>();
    return std::min(1.0, max_norm / (norm + 1e-6));
  }

  std::vector<std::string> names;
  std::vector<at::Tensor> parameters, exp_avg, exp_avg_sq, steps;
  at::Tensor x, y, gain;

 private:
  void add(const std::string& name, const at::Tensor& value) {
    names.push_back(name);
    parameters.push_back(value.clone().requires_grad_(true));
    exp_avg.push_back(at::zeros_like(value));
    exp_avg_sq.push_back(at::zeros_like(value));
    steps.push_back(at::zeros({}));
  }

  std::int64_t width_, depth_;
};

}  // namespace nanquest::bench
