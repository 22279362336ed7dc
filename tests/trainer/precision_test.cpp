// Device, scaler, autocast, formats: the parts that decide in which format a step is computed.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>

#include <cmath>

#include "tests/trainer/helpers.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/adamw.h"
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

TEST(Device, Tf32IsSwitchedForMatmulsAndConvolutionsApart) {
  if (!at::hasCUDA()) GTEST_SKIP() << "no CUDA here";
  for (const bool matmul : {false, true}) {
    set_numerics(1, {.tf32_matmul = matmul, .tf32_conv = !matmul});
    EXPECT_EQ(at::globalContext().allowTF32CuBLAS(), matmul);
    EXPECT_EQ(at::globalContext().allowTF32CuDNN(), !matmul);
  }
  set_numerics(1, {});
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
  s.good_step(1);  // the patience is restored
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
  EXPECT_GT(s.overflows(), 10);  // counted nevertheless
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

}  // namespace
}  // namespace nanquest::trainer
