// Limits on an update, compared with the papers' formulas in plain numbers; groups of weights; SGD.
#include <ATen/ATen.h>

#include <cmath>
#include <numeric>

#include "tests/trainer/helpers.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/clips.h"
#include "trainer/optim/sgd.h"

namespace nanquest::trainer {
namespace {

/// Takes steps of size one against the gradient and nothing else: the weight shows the remaining gradient.
class Plain final : public Optimizer {
 public:
  using Optimizer::Optimizer;
  void step(double lr) override {
    const at::NoGradGuard no_grad;
    for (const auto& [name, p] : parameters()) {
      at::Tensor weight = p;
      weight.sub_(p.grad() * lr);
    }
  }
  NamedTensors state() const override { return {}; }
};

at::Tensor weight(std::initializer_list<double> values) {
  return at::tensor(std::vector<double>(values), at::kFloat).set_requires_grad(true);
}

void give(const at::Tensor& p, const std::vector<double>& gradient) {
  p.mutable_grad() = at::tensor(gradient, at::kFloat);
}

std::vector<double> values(const at::Tensor& t) {
  const at::Tensor all = t.detach().to(at::kDouble).contiguous();
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()};
}

TEST(ModuleClip, EachModuleHasItsOwnLimit) {
  const at::Tensor a1 = weight({0, 0}), a2 = weight({0}), b = weight({0, 0});
  auto clip = make_module_clip(
      std::make_unique<Plain>(NamedTensors{{"a.weight", a1}, {"a.bias", a2}, {"b.weight", b}}), 2);
  give(a1, {2, 4});  // with the bias a norm of 6
  give(a2, {4});
  give(b, {0.6, 0.8});
  clip->step(1);
  EXPECT_NEAR(a1[1].item<double>(), -4 / 3.0, 1e-6);
  EXPECT_NEAR(a2[0].item<double>(), -4 / 3.0, 1e-6);
  EXPECT_NEAR(b[1].item<double>(), -0.8, 1e-6) << "below the limit nothing is done";
}

TEST(ZClip, FollowsItsFormulaStepByStep) {
  const at::Tensor w = weight({0, 0});
  auto clip =
      make_zclip(std::make_unique<Plain>(NamedTensors{{"w", w}}), {.z = 2.5, .alpha = 0.97, .warmup = 25});
  std::vector<double> first;
  double mean = 0, variance = 0, before = 0;
  int acted = 0;
  for (int step = 0; step < 200; ++step) {
    double norm = 1 + 0.2 * std::sin(step * 1.7);
    if (step > 30 && step % 20 == 0) norm *= 40;
    give(w, {0.6 * norm, 0.8 * norm});
    clip->step(1);
    const double seen = std::hypot(values(w)[0], values(w)[1]) - before;
    before += seen;
    double wanted = norm;
    if (step < 25) {
      first.push_back(norm);
      if (step == 24) {
        mean = std::accumulate(first.begin(), first.end(), 0.0) / 25;
        for (const double n : first) variance += (n - mean) * (n - mean) / 25;
      }
    } else {
      const double score = (norm - mean) / std::sqrt(variance);
      if (score > 2.5) {
        wanted = mean + 2.5 * 2.5 / score * std::sqrt(variance);
        ++acted;
      }
      mean = 0.97 * mean + 0.03 * wanted;
      variance = 0.97 * variance + 0.03 * (wanted - mean) * (wanted - mean);
    }
    EXPECT_NEAR(seen, wanted, 2e-4 * (1 + before / 100)) << step;
  }
  EXPECT_GE(acted, 8);
  EXPECT_EQ(clip->state().back().first, "zclip");
}

TEST(ZClip, NormsThatNeverDifferAreLeftAlone) {
  const at::Tensor w = weight({0});
  auto clip = make_zclip(std::make_unique<Plain>(NamedTensors{{"w", w}}), {.warmup = 5});
  for (int step = 0; step < 10; ++step) {
    give(w, {1});
    clip->step(1);
  }
  EXPECT_EQ(w.item<double>(), -10);
}

TEST(Spam, ClipsTheElementThatSpikesAndForgetsTheMoments) {
  const at::Tensor w = weight({0, 0});
  auto adamw = make_adamw({{"w", w}}, {});
  auto spam = make_spam(std::move(*adamw), {.threshold = 50, .interval = 10, .warmup = 4, .settle = 3});
  ASSERT_TRUE(spam);
  // AdamW and SPAM by hand, for the two elements.
  double m[2] = {}, v[2] = {}, x[2] = {};
  int count = 0;
  for (int step = 0; step < 24; ++step) {
    double g[2] = {0.1, step == 6 || step == 17 ? 30.0 : -0.1};
    give(w, {g[0], g[1]});
    (*spam)->step(0.01);
    const int since = step % 10;
    if (step > 0 && since == 0) m[0] = m[1] = v[0] = v[1] = count = 0;
    double lr = 0.01;
    if (step >= 10 && since < 4) lr *= 0.5 * (1 - std::cos(M_PI * (since + 1) / 5.0));
    ++count;
    for (int i = 0; i < 2; ++i) {
      if (since >= 3 && g[i] * g[i] > 50 * v[i]) g[i] = std::copysign(std::sqrt(50 * v[i]), g[i]);
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.999 * v[i] + 0.001 * g[i] * g[i];
      const double mean = m[i] / (1 - std::pow(0.9, count)), square = v[i] / (1 - std::pow(0.999, count));
      x[i] -= lr * mean / (std::sqrt(square) + 1e-8);
    }
    EXPECT_NEAR(values(w)[0], x[0], 1e-5) << step;
    EXPECT_NEAR(values(w)[1], x[1], 1e-5) << step;
  }
  EXPECT_EQ(make_spam(std::make_unique<Plain>(NamedTensors{{"w", w}}), {}).error().code, ErrorCode::usage);
}

TEST(Clips, SwitchesThatAreOffLeaveTheOptimizerAlone) {
  const at::Tensor w = weight({0});
  auto plain = std::make_unique<Plain>(NamedTensors{{"w", w}});
  const Optimizer* before = plain.get();
  EXPECT_EQ(with_clips(std::move(plain), {})->get(), before);
  auto held =
      with_clips(std::move(*make_adamw({{"w", w}}, {})), {.module_clip = 1, .zclip = true, .spam = true});
  ASSERT_TRUE(held);
  std::string names;
  for (const auto& [name, t] : (*held)->state()) names += name + " ";
  EXPECT_EQ(names, "exp_avg.w exp_avg_sq.w step.w zclip spam.steps ");
  (*held)->cast_to_fp32();
  EXPECT_EQ((*held)->state()[3].second.scalar_type(), at::kDouble) << "what is wider already stays so";
}

TEST(Sgd, MovesAsItsFormulaSays) {
  for (const bool nesterov : {false, true}) {
    const at::Tensor w =
        at::tensor(std::vector<double>{1, -2}, at::kFloat).reshape({1, 2}).set_requires_grad(true);
    auto sgd = make_sgd({{"w", w}}, {.momentum = 0.8, .nesterov = nesterov, .weight_decay = 0.1});
    ASSERT_TRUE(sgd);
    double x[2] = {1, -2}, v[2] = {};
    for (int step = 0; step < 5; ++step) {
      w.mutable_grad() = at::full({1, 2}, 0.5 + step);
      (*sgd)->step(0.1);
      for (int i = 0; i < 2; ++i) {
        const double g = 0.5 + step + 0.1 * x[i];
        v[i] = 0.8 * v[i] + g;
        x[i] -= 0.1 * (nesterov ? g + 0.8 * v[i] : v[i]);
      }
      EXPECT_NEAR(values(w)[0], x[0], 1e-5);
      EXPECT_NEAR(values(w)[1], x[1], 1e-5);
    }
  }
  const at::Tensor w = weight({1});
  auto plain = make_sgd({{"w", w}}, {.momentum = 0});
  EXPECT_TRUE((*plain)->state().empty());
  give(w, {2});
  (*plain)->step(0.25);
  EXPECT_EQ(w.item<double>(), 0.5);
  EXPECT_EQ(make_sgd({{"w", w}}, {.momentum = 1}).error().code, ErrorCode::usage);
  EXPECT_EQ(make_sgd({{"w", w}}, {.momentum = 0, .nesterov = true}).error().code, ErrorCode::usage);
}

TEST(Groups, TheFirstThatFitsHasTheWeight) {
  const at::Tensor matrix = at::ones({2, 2}).set_requires_grad(true),
                   head = at::ones({2, 2}).set_requires_grad(true),
                   norm = at::ones({2}).set_requires_grad(true);
  const NamedTensors all = {{"body.weight", matrix}, {"head.weight", head}, {"norm.weight", norm}};
  auto adamw = make_adamw(
      all, {.weight_decay = 0.5,
            .groups = {{.within = "head.", .lr_factor = 0.1}, {.within = "norm.", .weight_decay = 0.2}}});
  ASSERT_TRUE(adamw) << adamw.error().text();
  for (const auto& [name, t] : all) t.mutable_grad() = at::zeros_like(t);
  (*adamw)->step(0.1);  // with gradients of zero only the decay moves
  EXPECT_NEAR(matrix[0][0].item<double>(), 1 - 0.1 * 0.5, 1e-6);
  EXPECT_NEAR(head[0][0].item<double>(), 1 - 0.01 * 0.5, 1e-6);
  EXPECT_NEAR(norm[0].item<double>(), 1 - 0.1 * 0.2, 1e-6);
  const auto none = make_adamw(all, {.groups = {{.within = "tail."}}});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("tail."), std::string::npos);
  EXPECT_FALSE(make_sgd(all, {.groups = {{.within = "tail."}}}));
}

}  // namespace
}  // namespace nanquest::trainer
