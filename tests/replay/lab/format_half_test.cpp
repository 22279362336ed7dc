// The two halves of a format, against PyTorch's own casts and numbers worked out by hand.
#include "replay/lab/format_half.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace nanquest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor kept(at::Tensor t, FormatHalf half, Format narrow) {
  t = t.clone();
  keep_half(t, half, narrow);
  return t;
}

TEST(FormatHalf, WithinTheNormalRangeTheRoundingIsThatOfACast) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({4096}) * at::exp(at::randn({4096}) * 2);
  for (const auto& [format, type] :
       {std::pair(Format::fp16, at::kHalf), std::pair(Format::bf16, at::kBFloat16)}) {
    const at::Tensor inside = x.abs().clamp(7e-5, 6e4);
    EXPECT_TRUE(at::equal(kept(inside, FormatHalf::range, format), inside.to(type).to(at::kFloat)));
  }
}

TEST(FormatHalf, TheWideRangeStays) {
  const at::Tensor x = at::tensor({1e30f, 1e-30f, 70001.0f});
  const at::Tensor y = kept(x, FormatHalf::range, Format::fp16);
  EXPECT_TRUE(at::allclose(y, x, 1e-3));
  // 70001 = 1.0681 · 2^16: steps of 64 with eleven bits.
  EXPECT_EQ(y[2].item<float>(), 70016.0f);
}

TEST(FormatHalf, TheNarrowRangeEndsWhereACastOverflows) {
  const at::Tensor x = at::tensor({65503.9f, 65519.9f, 65520.1f, -70000.0f, 1.00001f});
  const at::Tensor y = kept(x, FormatHalf::precision, Format::fp16), cast = x.to(at::kHalf).to(at::kFloat);
  EXPECT_TRUE(at::equal(at::isinf(y), at::isinf(cast)));
  EXPECT_EQ(y[3].item<double>(), -kInfinity);
  EXPECT_EQ(y[4].item<float>(), 1.00001f) << "precision was taken as well";
}

TEST(FormatHalf, BelowTheSmallestNormalOnlySubnormalStepsAreLeft) {
  const at::Tensor x = at::tensor({1e-8f, 5e-8f, 3.3e-5f});
  EXPECT_TRUE(at::equal(kept(x, FormatHalf::precision, Format::fp16), x.to(at::kHalf).to(at::kFloat)));
}

TEST(FormatHalf, WhatIsNotFiniteStaysAsItIs) {
  const at::Tensor x = at::tensor({kInfinity, -kInfinity, std::nan("")});
  for (const FormatHalf half : {FormatHalf::range, FormatHalf::precision}) {
    const at::Tensor y = kept(x, half, Format::fp16);
    EXPECT_EQ(y[0].item<double>(), kInfinity);
    EXPECT_EQ(y[1].item<double>(), -kInfinity);
    EXPECT_TRUE(std::isnan(y[2].item<double>()));
  }
}

}  // namespace
}  // namespace nanquest
