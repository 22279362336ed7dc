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

TEST(Device, WhatIsLeftOpenIsWhatTheDeviceIsBestAt) {
  const at::Device gpu(at::kCUDA, 0), cpu(at::kCPU);
  const auto settled = [](at::Device device, int major) {
    NumericsOptions options;
    const auto remarks = settle_formats(options, device, major);
    EXPECT_EQ(remarks->size(), 1u);
    EXPECT_NE(remarks->front().find(short_name(*options.amp)), std::string::npos) << remarks->front();
    return *options.amp;
  };
  EXPECT_EQ(settled(cpu, 0), at::kFloat);
  EXPECT_EQ(settled(gpu, 7), at::kHalf);
  EXPECT_EQ(settled(gpu, 8), at::kBFloat16);
  EXPECT_EQ(settled(gpu, 12), at::kBFloat16);
  EXPECT_EQ(settled(gpu, 0), at::kHalf) << "a device that does not tell";
}

TEST(Device, AFormatThatItLacksBecomesFp32OrIsRefused) {
  const at::Device gpu(at::kCUDA, 0), cpu(at::kCPU);
  const auto settle = [](NumericsOptions& options, at::Device device, int major) {
    return settle_formats(options, device, major);
  };
  for (const int major : {7, 8, 9}) {
    for (const bool strict : {false, true}) {
      NumericsOptions options{.amp = at::kBFloat16, .tf32_matmul = true, .strict = strict};
      const auto remarks = settle(options, gpu, major);
      ASSERT_EQ(remarks.ok(), major >= 8 || !strict);
      if (!remarks) {
        EXPECT_EQ(exit_code(remarks.error().code), 2);
        EXPECT_NE(remarks.error().text().find("--strict"), std::string::npos);
        continue;
      }
      EXPECT_EQ(options.amp, major >= 8 ? at::kBFloat16 : at::kFloat);
      EXPECT_EQ(options.tf32_matmul, major >= 8);
      EXPECT_FALSE(options.tf32_conv);
      EXPECT_EQ(remarks->size(), major >= 8 ? 0u : 2u);
    }
  }
  NumericsOptions options{.amp = at::kHalf, .tf32_conv = true};
  EXPECT_EQ(settle(options, cpu, 0)->size(), 1u);
  EXPECT_FALSE(options.tf32_conv);
  EXPECT_EQ(options.amp, at::kHalf);
  EXPECT_EQ(find_device("tpu").error().code, ErrorCode::usage);
}

// Kernels of one use take tf32, those of the other do not.
TEST(Device, Tf32IsSwitchedForMatmulsAndConvolutionsApart) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA here";
  for (const bool matmul : {false, true}) {
    set_numerics(1, {.tf32_matmul = matmul, .tf32_conv = !matmul});
    EXPECT_EQ(at::globalContext().allowTF32CuBLAS(), matmul);
    EXPECT_EQ(at::globalContext().allowTF32CuDNN(), !matmul);
  }
  set_numerics(1, {});
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
