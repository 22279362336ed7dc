// Range overflows that later ops hide: which of them are harmful. The reference is the same program in fp64.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "probe/record/record.h"
#include "probe/trace/culprit.h"
#include "probe/trace/hidden.h"

namespace nanquest {
namespace {

using Program = std::function<at::Tensor(const at::Tensor&)>;

struct Case {
  const char* name;
  std::vector<double> input;
  at::ScalarType type;
  Program program;
  bool harmful;
};

at::Tensor gelu_new(const at::Tensor& x) {
  return x * 0.5 * (1 + at::tanh((x + at::pow(x, 3) * 0.044715) * 0.7978845608));
}

at::Tensor normalised(const at::Tensor& x) {
  return x * at::rsqrt(at::mean(x * x, -1, true) + 1e-5);
}

/// Transformers' T5 looks for infinities and clamps them.
at::Tensor clamped(const at::Tensor& x) {
  const at::Tensor y = x * x;
  return at::isinf(y).any().item<bool>() ? at::clamp(y, -64504.0, 64504.0) : y;
}

at::Tensor in_place(const at::Tensor& x) {
  at::Tensor y = x.clone();
  y.mul_(y);
  y.rsqrt_();
  return y;
}

at::Tensor through_views(const at::Tensor& x) {
  return at::tanh((x * x).view({2, 2}).t().select(0, 0));
}

at::Tensor other_part_overwritten(const at::Tensor& x) {
  at::Tensor y = x * x;
  y.slice(0, 0, 2).fill_(4.0);  // the overflowed values are overwritten
  return at::rsqrt(y);
}

const Case kCases[] = {
    {"gelu", {30, 42, -41, 1}, at::kHalf, gelu_new, false},
    {"sigmoid_by_hand",
     {-100, 1, 2, 3},
     at::kFloat,
     [](const at::Tensor& x) { return 1 / (1 + at::exp(-x)); },
     false},
    {"norm", {300, 300, 200, 1}, at::kHalf, normalised, true},
    {"norm_of_bf16", {3e19, 3e19, 2e19, 1}, at::kBFloat16, normalised, true},  // beyond fp32's range as well
    {"gelu_of_bf16", {3e13, 42, -41, 1}, at::kBFloat16, gelu_new, false},
    {"reciprocal", {300, 1, 2, 3}, at::kHalf, [](const at::Tensor& x) { return 1 / (x * x); }, true},
    {"reciprocal_of_far_more",
     {1e30, 1, 2, 3},
     at::kFloat,
     [](const at::Tensor& x) { return 1 / (x * x); },
     false},
    {"large_mask",
     {-40000, 1, 2, 3},
     at::kHalf,
     [](const at::Tensor& x) { return at::softmax(x * 2, 0); },
     false},
    {"nan_replaced",
     {300, 1, 2, 3},
     at::kHalf,
     [](const at::Tensor& x) {
       const at::Tensor square = x * x;
       return at::nan_to_num(square - square + 1);
     },
     true},
    {"clamped", {300, 1, 2, 3}, at::kHalf, clamped, false},
    {"in_place", {300, 1, 2, 3}, at::kHalf, in_place, true},
    {"through_views", {300, 1, 2, 3}, at::kHalf, through_views, false},
    {"overwritten", {300, 300, 2, 3}, at::kHalf, other_part_overwritten, false},
    {"where_chooses_the_other",
     {200, 1, 2, 3},
     at::kFloat,
     [](const at::Tensor& x) { return at::where(x > 20, x, at::log1p(at::exp(x))); },
     false},
};

class HiddenOverflow : public ::testing::TestWithParam<Case> {};

TEST_P(HiddenOverflow, IsHarmIfSomethingFiniteComesOutWrong) {
  const Case& c = GetParam();
  const at::Tensor x = at::tensor(c.input, at::kDouble);
  const at::Tensor low = x.to(c.type);
  at::Tensor result;
  const Recording rec = record_step({}, [&] {
    result = c.program(low);
    return result.to(at::kFloat).sum();
  });
  ASSERT_TRUE(at::isfinite(result).all().item<bool>()) << "the overflow is not hidden";

  // Independent of the class under test: the program's results in fp64, rounded to the format.
  const double tolerance = c.type == at::kHalf ? 1e-2 : c.type == at::kBFloat16 ? 3e-2 : 1e-5;
  const at::Tensor truth = c.program(x).to(c.type);
  if (std::string(c.name) != "clamped") {  // in fp64 it takes the other branch
    ASSERT_EQ(at::allclose(result, truth, tolerance, 1e-7), !c.harmful) << result << truth;
  }

  int births = 0;
  for (const OpRow& op : rec.doc.ops) {
    if (!(op.flags & kOpBirthFiniteAbove)) continue;
    ++births;
    EXPECT_EQ((op.flags & kOpHidesDamage) != 0, c.harmful) << op.name;
    EXPECT_EQ((op.flags & kOpHidesNothing) != 0, !c.harmful) << op.name;
  }
  EXPECT_GE(births, 1);
  EXPECT_EQ(!hidden_overflows(rec.doc).empty(), c.harmful);
  SnapshotDoc doc = rec.doc;
  EXPECT_EQ(find_culprit(doc), c.harmful) << describe_culprit(doc);
}

INSTANTIATE_TEST_SUITE_P(Cases, HiddenOverflow, ::testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(HiddenOverflowFollowing, WhatGoesIntoARandomOpIsNotKnown) {
  const at::Tensor x = at::tensor({300.0, 1.0, 2.0, 3.0}).to(at::kHalf);
  const Recording rec = record_step({}, [&] { return at::tanh(std::get<0>(at::native_dropout(x * x, 1e-7, true))); });
  for (const OpRow& op : rec.doc.ops) EXPECT_FALSE(op.flags & (kOpHidesDamage | kOpHidesNothing)) << op.name;

  EXPECT_TRUE(hidden_overflows(rec.doc).empty());
}

TEST(HiddenOverflowFollowing, ChangesNoBitAndNoRandomNumber) {
  const auto run = [] {
    at::manual_seed(3);
    const at::Tensor x = at::tensor({300.0, 1.0, 2.0, 3.0}).to(at::kHalf);
    at::Tensor y = x * x;
    y.rsqrt_();
    return at::cat({y, at::tanh(x * x), at::rand({4}, at::kHalf)});
  };
  const at::Tensor plain = run();
  at::Tensor recorded;
  (void)record_step({}, [&] { return recorded = run(); });
  EXPECT_TRUE(at::equal(plain, recorded));
}

}  // namespace
}  // namespace nanquest
