// Schedule, scaler, autocast, formats: the parts that decide how far a step goes.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include <cmath>
#include <numbers>

#include "tests/trainer/helpers.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/adamw.h"
#include "trainer/optim/schedule.h"
#include "trainer/precision/autocast.h"
#include "trainer/precision/device.h"
#include "trainer/precision/formats.h"
#include "trainer/precision/grad_scaler.h"

namespace nanquest::trainer {
namespace {

TEST(Device, FormatsThatItLacksAreRefusedWithAWayOut) {
  const at::Device gpu(at::kCUDA, 0), cpu(at::kCPU);
  for (const int major : {7, 8, 9}) {
    const Status bf16 = check_formats({.amp = at::kBFloat16}, gpu, major);
    EXPECT_EQ(bf16.ok(), major >= 8);
    EXPECT_EQ(check_formats({.tf32 = true}, gpu, major).ok(), major >= 8);
    EXPECT_TRUE(check_formats({.amp = at::kHalf}, gpu, major));
    if (bf16) continue;
    EXPECT_EQ(bf16.error().code, ErrorCode::unsupported);
    EXPECT_EQ(exit_code(bf16.error().code), 2);
    EXPECT_NE(bf16.error().text().find("--amp-dtype fp16"), std::string::npos);
  }
  EXPECT_TRUE(check_formats({.amp = at::kBFloat16}, cpu, 0));
  EXPECT_FALSE(check_formats({.tf32 = true}, cpu, 0));
  EXPECT_EQ(usable_device({.device = "cpu", .amp = at::kHalf})->type(), at::kCPU);
  EXPECT_EQ(usable_device({.device = "tpu"}).error().code, ErrorCode::usage);
  EXPECT_EQ(usable_device({.tf32 = true}).error().code, ErrorCode::unsupported);
}

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

TEST(Scaler, HalvesGrowsAndRemembers) {
  GradScaler s({.initial = 1024, .growth_interval = 3});
  EXPECT_TRUE(s.overflow(0));
  EXPECT_EQ(s.scale(), 512);
  for (std::int64_t t = 1; t <= 3; ++t) s.good_step(t);
  EXPECT_EQ(s.scale(), 1024);
  s.good_step(4);
  EXPECT_TRUE(s.overflow(5));  // and the count of good steps starts again
  s.good_step(6);
  s.good_step(7);
  EXPECT_EQ(s.scale(), 512);
  s.good_step(8);
  EXPECT_EQ(s.scale(), 1024);
  ASSERT_EQ(s.history().size(), 4u);
  EXPECT_EQ(s.history()[1].step, 3);
  EXPECT_EQ(s.history()[1].from, 512);
  EXPECT_EQ(s.history()[1].to, 1024);
  EXPECT_EQ(s.overflows(), 2);
}

TEST(Scaler, NeverBelowItsFloorAndSaysSo) {
  GradScaler s({.initial = 4, .floor = 1});
  EXPECT_TRUE(s.overflow(0));
  EXPECT_TRUE(s.overflow(1));
  EXPECT_EQ(s.scale(), 1);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(s.overflow(2));
  EXPECT_EQ(s.scale(), 1);
  EXPECT_TRUE(std::isfinite(1 / s.scale()));
}

TEST(Scaler, NeverAboveItsCeiling) {
  GradScaler s({.initial = 1 << 23, .growth_interval = 1});
  for (std::int64_t t = 0; t < 2000; ++t) s.good_step(t);
  EXPECT_EQ(s.scale(), 1 << 24);
}

TEST(Scaler, HysteresisTakesSeveralOverflowsInARow) {
  GradScaler s({.initial = 1024, .hysteresis = 2});
  EXPECT_TRUE(s.overflow(0));
  EXPECT_EQ(s.scale(), 1024);
  s.good_step(1);  // patience comes back
  EXPECT_TRUE(s.overflow(2));
  EXPECT_EQ(s.scale(), 1024);
  EXPECT_TRUE(s.overflow(3));
  EXPECT_EQ(s.scale(), 512);
}

TEST(Scaler, TakesBackWhatWasNotItsFault) {
  GradScaler s({.initial = 1024, .growth_interval = 4, .hysteresis = 2});
  s.good_step(0);
  const GradScaler::State before = s.state();
  while (s.overflow(1)) {
  }
  s.take_back(1, before);
  EXPECT_EQ(s.scale(), 1024);
  EXPECT_EQ(s.state().good_steps, before.good_steps);
  EXPECT_EQ(s.state().patience, 2);
  EXPECT_GT(s.overflows(), 10);  // counted all the same
  EXPECT_EQ(s.history().back().from, 1);
  EXPECT_EQ(s.history().back().to, 1024);
  const std::size_t changes = s.history().size();
  s.take_back(2, s.state());
  EXPECT_EQ(s.history().size(), changes);
}

TEST(Scaler, DisabledIsOneForEver) {
  GradScaler s({.initial = 1024}, false);
  EXPECT_EQ(s.scale(), 1);
  EXPECT_FALSE(s.overflow(0));
  s.good_step(1);
  EXPECT_EQ(s.scale(), 1);
  EXPECT_TRUE(s.history().empty());
}

TEST(Autocast, LeavesNoStaleWeightsBehind) {
  at::Tensor w = at::full({4, 4}, 1.0).set_requires_grad(true);
  const at::Tensor x = at::ones({1, 4});
  {
    const AutocastGuard guard(at::kCPU, at::kBFloat16);
    EXPECT_EQ(at::linear(x, w)[0][0].item<double>(), 4.0);
  }
  {
    const at::NoGradGuard no_grad;
    w.mul_(10);
  }
  const AutocastGuard guard(at::kCPU, at::kBFloat16);
  EXPECT_EQ(at::linear(x, w)[0][0].item<double>(), 40.0);
}

TEST(Autocast, EvaluationDoesNotTakeTheHistoryAway) {
  at::Tensor w = at::ones({4, 4}).set_requires_grad(true);
  {
    const at::NoGradGuard no_grad;
    const AutocastGuard guard(at::kCPU, at::kHalf);
    (void)at::linear(at::ones({1, 4}), w);
  }
  const AutocastGuard guard(at::kCPU, at::kHalf);
  EXPECT_TRUE(at::linear(at::ones({1, 4}), w).requires_grad());
}

TEST(Autocast, PutsBackWhatItFound) {
  {
    const AutocastGuard outer(at::kCPU, at::kBFloat16);
    {
      const AutocastGuard inner(at::kCPU, at::kFloat);
      EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
      EXPECT_EQ(at::linear(at::ones({1, 4}), at::ones({4, 4})).scalar_type(), at::kFloat);
    }
    EXPECT_TRUE(at::autocast::is_autocast_enabled(at::kCPU));
    EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), at::kBFloat16);
  }
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

std::string format_of(const std::vector<FormatFact>& facts, const std::string& start) {
  for (const FormatFact& f : facts)
    if (f.what.starts_with(start)) return f.format;
  return "missing";
}

TEST(Formats, AreWhatTheOpsReallyGive) {
  auto model = make_gpt({.depth = 1, .width = 16, .heads = 2, .context = 8}, 1, at::kCPU);
  ASSERT_TRUE(model);
  const auto optimizer = std::move(*make_adamw((*model)->parameters(), {}));
  const at::Tensor rng = at::rand({1});
  for (const at::ScalarType amp : {at::kHalf, at::kBFloat16, at::kFloat}) {
    const auto facts = formats_in_use((*model)->parameters(), optimizer->state(), at::kCPU, amp);
    const AutocastGuard guard(at::kCPU, amp);
    const at::Tensor product = at::linear(at::ones({2, 16}), at::ones({16, 16}));
    const char* name = product.scalar_type() == at::kHalf       ? "fp16"
                       : product.scalar_type() == at::kBFloat16 ? "bf16"
                                                                : "fp32";
    EXPECT_EQ(format_of(facts, "activations"), name);
    EXPECT_EQ(format_of(facts, "weights"), "fp32");
    EXPECT_EQ(format_of(facts, "optimizer moments"), "fp32");
    EXPECT_EQ(format_of(facts, "weight gradients"), "fp32");
    EXPECT_EQ(format_of(facts, "loss"), "fp32");
  }
  const auto low = (*model)->parameters();
  EXPECT_EQ(format_of(formats_in_use({{"w", low[0].second.to(at::kHalf)}, {"b", low[1].second}}, {}, at::kCPU,
                                     at::kHalf),
                      "weights"),
            "fp16 (1), fp32 (1)");
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
