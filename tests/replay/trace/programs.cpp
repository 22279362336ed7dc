#include "tests/replay/trace/programs.h"

#include <ATen/ATen.h>

#include <cmath>
#include <memory>

#include "probe/observe/module_scope.h"

namespace nanquest::testing {
namespace {

/// Makes named tensors of one dtype and collects them for the StepState.
struct Maker {
  Maker(int seed, at::ScalarType dtype) : type(dtype) { at::manual_seed(static_cast<std::uint64_t>(seed)); }
  at::Tensor parameter(const std::string& name, at::IntArrayRef sizes, double scale = 0.3, double shift = 0) {
    at::Tensor t = (at::randn(sizes) * scale + shift).to(type).set_requires_grad(true);
    step.state.parameters.emplace_back(name, t);
    return t;
  }
  at::Tensor batch(const std::string& name, at::Tensor t) {
    if (t.is_floating_point()) t = t.to(type);
    step.state.batch.emplace_back(name, t);
    return t;
  }
  at::Tensor buffer(const std::string& name, at::Tensor t) {
    if (t.is_floating_point()) t = t.to(type);
    step.state.buffers.emplace_back(name, t);
    return t;
  }
  at::Tensor state(const std::string& name, const at::Tensor& t) {
    step.state.optimizer.emplace_back(name, t);
    return t;
  }
  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all;
    for (const auto& [name, t] : step.state.parameters) all.push_back(t);
    return all;
  }
  at::ScalarType type;
  Step step;
};

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& p : parameters) all.push_back(p.grad());
  return all;
}

Step mlp(int seed, at::ScalarType type) {
  Maker m(seed, type);
  auto w1 = m.parameter("up.weight", {24, 10}), b1 = m.parameter("up.bias", {24});
  auto w2 = m.parameter("down.weight", {5, 24});
  auto x = m.batch("x", at::randn({7, 10}));
  auto y = m.batch("y", at::randint(0, 5, {7}, at::kLong));
  m.step.run = [=] {
    at::Tensor h;
    {
      const ModuleScope scope("up", "Linear");
      h = at::gelu(at::linear(x, w1, b1));
    }
    const ModuleScope scope("down", "Linear");
    auto loss = at::cross_entropy_loss(at::linear(h, w2) + 1e-6, y, {}, at::Reduction::Mean, -100, 0.1);
    loss.backward();
    return loss;
  };
  return m.step;
}

Step attention(int seed, at::ScalarType type, bool fused) {
  Maker m(seed, type);
  auto qkv = m.parameter("qkv.weight", {48, 16}), out = m.parameter("out.weight", {16, 16});
  auto g = m.parameter("norm.weight", {16}, 0.1, 1), b = m.parameter("norm.bias", {16}, 0.1);
  auto x = m.batch("x", at::randn({2, 9, 16}));
  m.step.run = [=] {
    const ModuleScope scope("attention", "SelfAttention");
    auto parts = at::chunk(at::linear(at::layer_norm(x, {16}, g, b), qkv), 3, -1);
    for (auto& p : parts) p = p.view({2, 9, 4, 4}).transpose(1, 2);
    at::Tensor a;
    if (fused) {
      a = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
    } else {
      auto mask = at::ones({9, 9}, at::kBool).triu(1);
      auto scores = at::matmul(parts[0], parts[1].transpose(-2, -1)) / std::sqrt(4.0);
      a = at::matmul(at::softmax(scores.masked_fill(mask, -INFINITY), -1), parts[2]);
    }
    auto loss = at::linear(a.transpose(1, 2).reshape({2, 9, 16}), out).pow(2).mean();
    loss.backward();
    return loss;
  };
  return m.step;
}

Step convolution(int seed, at::ScalarType type) {
  Maker m(seed, type);
  auto w = m.parameter("conv.weight", {6, 3, 3, 3}), c = m.parameter("conv.bias", {6});
  auto g = m.parameter("bn.weight", {6}, 0.1, 1), b = m.parameter("bn.bias", {6}, 0.1);
  auto mean = m.buffer("bn.running_mean", at::zeros({6})), var = m.buffer("bn.running_var", at::ones({6}));
  auto x = m.batch("x", at::randn({4, 3, 8, 8}));
  m.step.run = [=] {
    auto h = at::batch_norm(at::conv2d(x, w, c, 1, 1), g, b, mean, var, true, 0.1, 1e-5, false);
    h = at::max_pool2d(at::silu(h), 2);
    auto loss = at::adaptive_avg_pool2d(h, {1, 1}).flatten().square().sum().sqrt();
    loss.backward();
    return loss;
  };
  return m.step;
}

Step dropout(int seed, at::ScalarType type) {
  Maker m(seed, type);
  auto w = m.parameter("w", {12, 12});
  auto x = m.batch("x", at::randn({6, 12}));
  m.step.run = [=] {
    auto h = at::dropout(at::linear(x, w), 0.3, true);
    h = h + at::randn_like(h) * 0.1 + at::rand({6, 12}, h.options());
    h = std::get<0>(at::native_dropout(h, 0.25, true));
    auto loss = at::rrelu(h, 0.1, 0.3, true).abs().mean();
    loss.backward();
    return loss;
  };
  return m.step;
}

Step embedding(int seed, at::ScalarType type) {
  Maker m(seed, type);
  auto table = m.parameter("embedding.weight", {20, 8});
  auto ids = m.batch("ids", at::randint(0, 20, {3, 6}, at::kLong));
  auto pick = m.batch("pick", at::randint(0, 6, {3, 2}, at::kLong));
  m.step.run = [=] {
    auto h = at::embedding(table, ids, 0);
    auto rows = at::gather(h, 1, pick.unsqueeze(-1).expand({3, 2, 8}));
    auto some = h.index({ids.sum(1).remainder(3)});
    auto put = at::zeros({20, 8}, h.options()).index_put({ids[0]}, h[0], true);
    auto loss = at::cat({rows.flatten(), some.flatten() * 0.5, put.flatten()}).square().mean() +
                at::where(ids > 10, ids, at::zeros_like(ids)).to(h.scalar_type()).mean() * 1e-3;
    loss.backward();
    return loss;
  };
  return m.step;
}

/// Gates multiply in place what their derivatives read as it was: autograd keeps copies of that.
Step gates(int seed, at::ScalarType type) {
  Maker m(seed, type);
  auto in = m.parameter("in.weight", {15, 7}), hidden = m.parameter("hidden.weight", {15, 5});
  auto scale = m.parameter("scale", {5}, 0.2, 1);
  auto x = m.batch("x", at::randn({3, 4, 7}));
  m.step.run = [=] {
    at::Tensor h = at::zeros({4, 5}, x.options());
    for (std::int64_t t = 0; t < x.size(0); ++t) {
      h = at::gru_cell(x[t], h, in, hidden);
      h = h.mul(2).mul_(scale).div_(scale.square().add(1)).tanh();
    }
    auto loss = h.square().sum();
    loss.backward();
    return loss;
  };
  return m.step;
}

Step in_place(int seed, at::ScalarType type) {
  Maker m(seed, type);
  auto w = m.parameter("w", {8, 8});
  auto x = m.batch("x", at::randn({4, 8}));
  auto seen = m.buffer("seen", at::zeros({2}));
  m.step.run = [=] {
    auto h = at::linear(x, w);
    auto base = at::empty({6, 8}, h.options());
    base.zero_();
    base.narrow(0, 1, 4).copy_(h);
    auto inner = base.narrow(0, 2, 3).transpose(0, 1).narrow(0, 1, 5);  // a view of a view of a view
    inner.mul_(1.5).add_(0.25);
    base.select(1, 0).fill_(0.125);
    auto strided = base.as_strided({3, 4}, {16, 2}, 1).clone();
    at::relu_(base);
    {
      const at::NoGradGuard no_grad;
      seen.add_(at::ones({2}, seen.options()), 0.5);
      seen[0].mul_(3);
    }
    auto loss = base.expand({2, 6, 8}).sum({1, 2}).mean() + at::dot(strided.flatten(), strided.flatten()) +
                base.unsqueeze(0).permute({2, 0, 1}).contiguous().view({-1}).std() * seen[0];
    loss.backward();
    return loss;
  };
  return m.step;
}

/// Clip and AdamW by foreach ops, by hand as torch.optim does it.
void foreach_update(const std::vector<at::Tensor>& p, std::vector<at::Tensor> m, std::vector<at::Tensor> v,
                    std::vector<at::Tensor> steps) {
  auto g = gradients_of(p);
  auto norms = at::_foreach_norm(g, 2.0);
  auto clip = at::clamp_max(1.0 / (at::linalg_vector_norm(at::stack(norms)) + 1e-6), 1.0);
  at::_foreach_mul_(g, clip);
  at::_foreach_add_(steps, 1);
  at::_foreach_mul_(p, 1 - 1e-4);
  at::_foreach_lerp_(m, g, 0.1);
  at::_foreach_mul_(v, 0.95);
  at::_foreach_addcmul_(v, g, g, 0.05);
  auto denominator = at::_foreach_sqrt(v);
  at::_foreach_div_(denominator, std::vector<at::Scalar>(p.size(), 0.3));
  at::_foreach_add_(denominator, 1e-8);
  at::_foreach_addcdiv_(p, m, denominator, -1e-2);
}

Step optimizer(int seed, at::ScalarType type, bool fused) {
  Maker m(seed, type);
  auto w = m.parameter("w", {6, 8}), b = m.parameter("b", {6});
  auto x = m.batch("x", at::randn({5, 8}));
  std::vector<at::Tensor> means, squares, steps, maxima;
  for (const auto& [name, p] : m.step.state.parameters) {
    means.push_back(m.state("exp_avg." + name, (at::randn(p.sizes()) * 0.01).to(type)));
    squares.push_back(m.state("exp_avg_sq." + name, (at::rand(p.sizes()) * 0.01).to(type)));
    steps.push_back(m.state("step." + name, at::full({}, 3.0, at::kFloat)));
  }
  const auto all = m.parameters();
  auto found = m.state("found_inf", at::zeros({1}, at::kFloat)),
       inverse = m.state("inv_scale", at::full({1}, 1.0 / 128));
  m.step.run = [=]() mutable {
    auto loss = at::linear(x, w, b).tanh().square().mean();
    (loss * 128).backward();
    const PhaseScope phase(Phase::optimizer);
    const at::NoGradGuard no_grad;
    auto gradients = gradients_of(all);
    at::_amp_foreach_non_finite_check_and_unscale_(gradients, found, inverse);
    if (fused)
      at::_fused_adamw_(all, gradients, means, squares, maxima, steps, 1e-3, 0.9, 0.99, 0.01, 1e-8, false,
                        false, {}, found);
    else
      foreach_update(all, means, squares, steps);
    return loss;
  };
  return m.step;
}

Step out_variants(int seed, at::ScalarType type) {
  Maker m(seed, type);
  auto a = m.parameter("a", {5, 5});
  auto x = m.batch("x", at::randn({5, 5}));
  auto kept = m.buffer("kept", at::zeros({5, 5}));
  m.step.run = [=]() mutable {
    auto loss = at::mm(x, a).sigmoid().sum();
    loss.backward();
    const at::NoGradGuard no_grad;
    auto target = at::empty({0}, x.options());
    at::add_out(target, x, a, 2);  // grows an empty tensor
    auto product = at::zeros({5, 5}, x.options());
    at::mm_out(product, target, x);
    at::mul_out(kept, product, x);  // writes an outside buffer
    auto values = at::empty({0}, x.options());
    auto indices = at::empty({0}, x.options().dtype(at::kLong));
    at::topk_out(values, indices, product, 2);
    return loss + values.sum() * 0 + kept.mean();
  };
  return m.step;
}

Step numbers(int seed, at::ScalarType type) {
  Maker m(seed, type);
  auto w = m.parameter("w", {6});
  auto x = m.batch("x", at::randn({6}));
  m.step.run = [=] {
    auto scale =
        at::tensor({0.5, 0.25, 1.0, 2.0, 4.0, 8.0}, at::kDouble).to(w.scalar_type());  // written by the host
    auto zero_dim = (w * x).sum() + 1e-6;  // 0-dim plus a wrapped number
    auto steps = at::scalar_tensor(3, at::kLong) + 2;
    auto powers = at::pow(2.0, at::arange(6, w.options()));
    auto loss = zero_dim * steps + (w * powers * scale).norm() + at::clamp(w, -0.5, 0.5).std() +
                at::full({}, 0.1, w.options());
    loss.backward();
    return loss;
  };
  return m.step;
}

Step spectrum(int seed, at::ScalarType type) {
  Maker m(seed, type);
  auto w = m.parameter("w", {8}), pairs = m.parameter("pairs", {5, 2}), x = m.batch("x", at::randn({8}));
  m.step.run = [=] {
    auto filter = at::view_as_complex(pairs);  // an outside value seen both ways
    auto seen = at::fft_rfft(w * x) * filter;
    auto parts = at::view_as_real(seen).clone();
    parts.select(1, 0).mul_(1.1);  // written as reals, read as complex
    auto energy = at::real(at::view_as_complex(parts) * seen.conj()).sum() + at::imag(seen).square().mean();
    auto loss = energy + at::fft_irfft(seen, 8).square().sum() + at::abs(filter).sum();
    loss.backward();
    return loss;
  };
  return m.step;
}

Step mixed(int seed, at::ScalarType type, at::ScalarType low) {
  Step inner = attention(seed, type, true);
  Step head = mlp(seed + 100, type);
  Step step;
  step.state = inner.state;
  for (const auto& entry : head.state.parameters) step.state.parameters.push_back(entry);
  for (const auto& entry : head.state.batch)
    step.state.batch.push_back({"head." + entry.first, entry.second});
  const auto p = step.state.parameters;
  const auto x = inner.state.batch[0].second, hx = head.state.batch[0].second,
             hy = head.state.batch[1].second;
  step.run = [=] {
    at::Tensor loss;
    {
      const Autocast autocast(low);
      auto parts =
          at::chunk(at::linear(at::layer_norm(x, {16}, p[2].second, p[3].second), p[0].second), 3, -1);
      for (auto& part : parts) part = part.view({2, 9, 4, 4}).transpose(1, 2);
      auto a = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
      auto h = at::linear(a.transpose(1, 2).reshape({2, 9, 16}), p[1].second);
      auto logits = at::linear(at::gelu(at::linear(hx, p[4].second, p[5].second)), p[6].second);
      loss = at::cross_entropy_loss(logits.to(at::kFloat), hy) +
             at::softmax(h, -1).to(at::kFloat).square().mean();
    }
    (loss * 256).backward();
    return loss;
  };
  return step;
}

}  // namespace

const std::vector<Program>& programs() {
  using at::ScalarType;
  static const std::vector<Program> all = {
      {"mlp", mlp},
      {"attention", [](int s, ScalarType t) { return attention(s, t, true); }},
      {"manual_attention", [](int s, ScalarType t) { return attention(s, t, false); }},
      {"convolution", convolution},
      {"dropout", dropout, true},
      {"embedding", embedding},
      {"in_place", in_place},
      {"gates", gates},
      {"foreach", [](int s, ScalarType t) { return optimizer(s, t, false); }},
      {"fused_adamw", [](int s, ScalarType t) { return optimizer(s, t, true); }},
      {"out_variants", out_variants},
      {"numbers", numbers},
      {"spectrum", spectrum},
      {"autocast_fp16", [](int s, ScalarType t) { return mixed(s, t, at::kHalf); }, false, true},
      {"autocast_bf16", [](int s, ScalarType t) { return mixed(s, t, at::kBFloat16); }, false, true},
  };
  return all;
}

}  // namespace nanquest::testing
