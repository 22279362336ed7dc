// Schedule and optimizer: the parts that decide the size of a step.
#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "tests/trainer/helpers.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/schedule.h"

namespace nanquest::trainer {
namespace {

// Kernels of one use take tf32, those of the other do not.

TEST(Schedule, WarmsUpFromTheFirstStepAndFollowsTheCosine) {
  const Schedule s{.peak = 2.0, .warmup_steps = 4, .total_steps = 104};
  EXPECT_DOUBLE_EQ(s.lr(0, 1), 0.5);  // not 0: the first step moves
  EXPECT_DOUBLE_EQ(s.lr(3, 1), 2.0);
  EXPECT_DOUBLE_EQ(s.lr(4, 1), 2.0);
  EXPECT_NEAR(s.lr(54, 1), 1.0, 1e-12);  // half way
  EXPECT_NEAR(s.lr(29, 1), 1.0 + std::cos(std::numbers::pi / 4), 1e-12);
  EXPECT_NEAR(s.lr(104, 1), 0.0, 1e-12);
  EXPECT_NEAR(s.lr(1000, 1), 0.0, 1e-12);
}

TEST(Schedule, FallsAsAskedAfterTheWarmUp) {
  // 10 steps up, 90 for what follows, floor 0.2: by hand.
  const auto at = [](Decay decay, std::int64_t step) {
    return Schedule{.peak = 1,
                    .warmup_steps = 10,
                    .total_steps = 100,
                    .floor_ratio = 0.2,
                    .decay = decay,
                    .decay_steps = 20}
        .shape(step);
  };
  for (const Decay decay : {Decay::cosine, Decay::linear, Decay::constant, Decay::wsd}) {
    EXPECT_DOUBLE_EQ(at(decay, 4), 0.5);
    EXPECT_DOUBLE_EQ(at(decay, 10), 1.0);
  }
  EXPECT_DOUBLE_EQ(at(Decay::constant, 99), 1.0);
  EXPECT_DOUBLE_EQ(at(Decay::linear, 55), 0.6);  // half way between 1 and 0.2
  EXPECT_DOUBLE_EQ(at(Decay::linear, 100), 0.2);
  EXPECT_DOUBLE_EQ(at(Decay::wsd, 80), 1.0);
  EXPECT_DOUBLE_EQ(at(Decay::wsd, 85), 0.8);  // a quarter of the way
  EXPECT_DOUBLE_EQ(at(Decay::wsd, 200), 0.2);
  EXPECT_DOUBLE_EQ(at(Decay::cosine, 55), 0.6);
  EXPECT_NEAR(at(Decay::cosine, 25), 0.2 + 0.8 * (1 + std::sqrt(3.0) / 2) / 2, 1e-12);  // a sixth: 30 degrees
  // A decay that is longer than what follows the warm-up begins behind it.
  EXPECT_DOUBLE_EQ(
      (Schedule{.warmup_steps = 50, .total_steps = 100, .decay = Decay::wsd, .decay_steps = 90}.shape(50)),
      1.0);
  EXPECT_EQ((ScheduleOptions{.decay = Decay::wsd, .decay_ratio = 0.25}.over(200).decay_steps), 50);
}

TEST(Schedule, BackoffIsAFactorOnEveryLaterStep) {
  const Schedule s{.peak = 1e-3, .warmup_steps = 10, .total_steps = 500, .floor_ratio = 0.1};
  for (std::int64_t t = 0; t < 500; ++t) EXPECT_DOUBLE_EQ(s.lr(t, 0.5), 0.5 * s.lr(t, 1.0));
  EXPECT_NEAR(s.lr(500, 1), 1e-4, 1e-12);
}

TEST(Schedule, WarmsUpForAShareOfTheStepsAndForAtLeastOne) {
  EXPECT_EQ((ScheduleOptions{.warmup_ratio = 0.03}).over(1000).warmup_steps, 30);
  EXPECT_EQ((ScheduleOptions{.warmup_ratio = 0.03}).over(10).warmup_steps, 1);
  EXPECT_EQ((ScheduleOptions{.warmup_ratio = 0}).over(10).warmup_steps, 0);
  EXPECT_EQ((ScheduleOptions{.peak = 2}).over(10).lr(0, 1), 2);
}

TEST(AdamW, DecaysMatricesAndNeitherNormsNorBiases) {
  at::Tensor matrix = at::ones({3, 2}).set_requires_grad(true), norm = at::ones({3}).set_requires_grad(true);
  auto adamw = make_adamw({{"norm", norm}, {"matrix", matrix}}, {.weight_decay = 0.5});
  ASSERT_TRUE(adamw);
  for (const at::Tensor& t : {matrix, norm}) t.mutable_grad() = at::zeros_like(t);
  (*adamw)->step(0.1);
  (*adamw)->step(0.1);
  EXPECT_TRUE(at::allclose(matrix, at::full({3, 2}, 0.95 * 0.95)));
  EXPECT_TRUE(at::equal(norm, at::ones({3})));
  for (const auto& [name, t] : (*adamw)->state())
    EXPECT_TRUE(!name.starts_with("step.") || t.item<double>() == 2) << name;
}

TEST(AdamW, CastsMomentsAndWeightsTogether) {
  at::Tensor w = at::ones({4}, at::kBFloat16).set_requires_grad(true);
  const auto optimizer = std::move(*make_adamw({{"w", w}}, {}));
  for (const auto& [name, t] : optimizer->state()) {
    if (name.starts_with("exp_avg")) {
      EXPECT_EQ(t.scalar_type(), at::kBFloat16) << name;
    }
  }
  optimizer->cast_to_fp32();
  for (const auto& [name, t] : optimizer->state()) EXPECT_EQ(t.scalar_type(), at::kFloat) << name;
  EXPECT_EQ(optimizer->parameters()[0].second.scalar_type(), at::kFloat);
}

TEST(AdamW, LeavesParametersWithoutGradientAlone) {
  at::Tensor a = at::ones({2}).set_requires_grad(true), b = at::ones({2}).set_requires_grad(true);
  const auto optimizer = std::move(*make_adamw({{"a", a}, {"b", b}}, {.weight_decay = 0.1}));
  (a * 2).sum().backward();
  optimizer->step(0.1);
  EXPECT_FALSE(at::equal(a, at::ones({2})));
  EXPECT_TRUE(at::equal(b, at::ones({2})));
  EXPECT_EQ(optimizer->without_gradient(), std::vector<std::string>{"b"});
}

TEST(AdamW, RefusesSettingsThatMakeNoSense) {
  EXPECT_EQ(make_adamw({}, {.beta2 = 1}).error().code, ErrorCode::usage);
  EXPECT_FALSE(check(AdamWOptions{.beta1 = -0.1}));
}

}  // namespace
}  // namespace nanquest::trainer
