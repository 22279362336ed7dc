// Signs of trouble: each is reported where it is planted, with its number, and not elsewhere.
#include "trainer/loop/health.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace nanquest::trainer {
namespace {

/// A weight of `sizes` whose gradient is `value` everywhere.
at::Tensor with_gradient(at::IntArrayRef sizes, double value) {
  at::Tensor p = at::ones(sizes).set_requires_grad(true);
  p.mutable_grad() = at::full(sizes, value);
  return p;
}

TEST(ClipWatch, SpeaksOnceWhenNineInTenOfAHundredAreClipped) {
  ClipWatch watch;
  std::vector<std::string> told;
  // Every tenth is not clipped: 90 of any hundred.
  for (int step = 0; step < 300; ++step)
    if (const auto line = watch.add(step % 10 != 0)) told.push_back(*line);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].starts_with("90 of the last 100 steps were clipped")) << told[0];
  ClipWatch calm;
  for (int step = 0; step < 300; ++step) EXPECT_FALSE(calm.add(step % 9 != 0)) << step;  // 88 or 89
  ClipWatch young;
  for (int step = 0; step < 99; ++step) EXPECT_FALSE(young.add(true)) << "not before there are a hundred";
}

TEST(WithoutGradient, IsOneLineWhateverTheNumber) {
  EXPECT_EQ(without_gradient_remark({"head.bias"}), "weight head.bias gets no gradient");
  EXPECT_EQ(without_gradient_remark({"blocks.1.up.weight", "blocks.1.down.weight", "blocks.1.down.bias"}),
            "3 weights of blocks.1 get no gradient, the first of them up.weight");
  EXPECT_EQ(without_gradient_remark({"blocks.1.up.weight", "blocks.10.up.weight"}),
            "2 weights get no gradient: blocks.1.up.weight, blocks.10.up.weight");
  EXPECT_EQ(without_gradient_remark({"model.a", "model.b", "model.c", "model.d", "model.e"}),
            "5 weights get no gradient: model.a, model.b, model.c and 2 more");
  EXPECT_EQ(without_gradient_remark({"a", "b"}), "2 weights get no gradient: a, b");
}

TEST(GradientRemarks, NormsOverDepth) {
  // 4 elements of 3 and of 0.02: norms of 6 and 0.04.
  const auto far = gradient_remarks(
      {{"blocks.0.w", with_gradient({2, 2}, 0.02)}, {"blocks.7.w", with_gradient({2, 2}, 3)}}, at::kFloat);
  ASSERT_EQ(far.size(), 1u);
  EXPECT_TRUE(
      far[0].starts_with("gradient norms are 150 times apart over depth: layer 7 has 6, layer 0 0.04"))
      << far[0];
  EXPECT_TRUE(
      gradient_remarks(
          {{"blocks.0.w", with_gradient({2, 2}, 0.04)}, {"blocks.7.w", with_gradient({2, 2}, 3)}}, at::kFloat)
          .empty());
  EXPECT_TRUE(
      gradient_remarks({{"a.w", with_gradient({2, 2}, 1e-5)}, {"b.w", with_gradient({2, 2}, 3)}}, at::kFloat)
          .empty())
      << "no numbers, no depth";
}

TEST(GradientRemarks, AGradientThatVanishes) {
  const auto told = gradient_remarks(
      {{"a.w", with_gradient({2}, 0)}, {"b.w", with_gradient({2}, 1e-9)}, {"c.w", with_gradient({2}, 1)}},
      at::kFloat);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_TRUE(told[0].starts_with("the gradient of a.w vanishes: its norm is 0, that of the largest 1.41"))
      << told[0];
  EXPECT_TRUE(gradient_remarks(
                  {{"q.lora_A.weight", with_gradient({2}, 0)}, {"q.lora_B.weight", with_gradient({2}, 1)}},
                  at::kFloat)
                  .empty())
      << "B of a fresh adapter is zero, and A's gradient with it";
}

// The effect of fp16 on gradients around its smallest number, 2^-24.
TEST(GradientRemarks, WhatFp16FlushesToZero) {
  const at::Tensor exact = at::pow(2.0, at::linspace(-30, -18, 1200)).reshape({12, 100});
  at::Tensor p = at::ones({12, 100}).set_requires_grad(true);
  p.mutable_grad() = exact.to(at::kHalf).to(at::kFloat);
  const double zeros = p.grad().eq(0).sum().item<double>();
  const double rows =
      p.grad().ne(0).any(1).sum().item<double>();  // rows that are zero altogether don't count
  const double share = (zeros - 100 * (12 - rows)) / (100 * rows);
  const auto told = gradient_remarks({{"w", p}}, at::kHalf);
  EXPECT_EQ(told.empty(), share <= 0.1) << share;
  p.mutable_grad() =
      exact.t().contiguous().reshape({12, 100}).to(at::kHalf).to(at::kFloat);  // now in every row
  const double mixed = p.grad().eq(0).sum().item<double>() / 1200;
  ASSERT_GT(mixed, 0.3);
  const auto flushed = gradient_remarks({{"w", p}}, at::kHalf);
  ASSERT_EQ(flushed.size(), 1u);
  EXPECT_TRUE(flushed[0].starts_with(std::to_string(std::lround(100 * mixed)) + " % of the gradient of w"))
      << flushed[0];
  EXPECT_TRUE(gradient_remarks({{"w", p}}, at::kBFloat16).empty()) << "bf16 has fp32's range";
  at::Tensor embedding = at::ones({100, 4}).set_requires_grad(true);
  embedding.mutable_grad() = at::zeros({100, 4});
  embedding.mutable_grad()[3].fill_(1);  // one row was looked up
  EXPECT_TRUE(gradient_remarks({{"e", embedding}}, at::kHalf).empty());
}

// An update below half a unit in the last place is lost: 2^-9 for bf16 around 1, 2^-25 for fp32.
TEST(UpdateWatch, UpdatesThatTheFormatSwallows) {
  for (const auto& [format, lost, kept] :
       {std::tuple{at::kBFloat16, 0x1p-10, 0x1p-7}, std::tuple{at::kFloat, 0x1p-26, 0x1p-23}}) {
    for (const double size : {lost, kept}) {
      at::Tensor p = at::ones({10000}, at::TensorOptions().dtype(format)).set_requires_grad(true);
      p.mutable_grad() = at::ones({10000}, at::TensorOptions().dtype(format));
      const UpdateWatch watch({{"w", p}});
      {
        const at::NoGradGuard no_grad;
        p.add_(size);
      }
      const auto told = watch.look({{"w", p}});
      ASSERT_EQ(told.has_value(), size == lost) << size;
      if (told) {
        EXPECT_TRUE(told->starts_with("100 % of the weights with a gradient did not move")) << *told;
      }
    }
  }
  at::Tensor still = at::ones({4}).set_requires_grad(true);
  still.mutable_grad() = at::zeros({4});
  const UpdateWatch watch({{"w", still}});
  EXPECT_FALSE(watch.look({{"w", still}})) << "nothing was to move";
}

}  // namespace
}  // namespace nanquest::trainer
