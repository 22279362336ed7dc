// A call is made again in any format without touching what it was given, and not at all where it mustn't be.
#include "replay/lab/call_again.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace nanquest {
namespace {

OpRow row(const char* name, const char* overload, std::uint32_t flags = 0) {
  OpRow op;
  op.name = name;
  op.overload = overload;
  op.flags = flags;
  return op;
}

TEST(CallAgain, AnOpInPlaceLeavesTheCallersMemoryAndTellsWhatItWouldHaveWritten) {
  const at::Tensor x = at::full({3}, 2.0, at::kHalf);
  const CallAgain call(row("aten::mul_", "Scalar"), {x, 3.0});
  for (const auto& results : {call.as_it_was(), call.in(at::kDouble)}) {
    ASSERT_TRUE(results);
    EXPECT_TRUE(at::equal(told_by(results).at(0).to(at::kDouble), at::full({3}, 6.0, at::kDouble)));
  }
  EXPECT_TRUE(at::equal(x, at::full({3}, 2.0, at::kHalf)));
}

TEST(CallAgain, OnePrecisionUpIsOfTheInputs) {
  const CallAgain half(row("aten::exp", ""), {at::full({1}, 12.0, at::kHalf)});
  ASSERT_EQ(half.one_up(), at::kFloat);
  EXPECT_TRUE(at::isinf(told_by(half.as_it_was()).at(0)).item<bool>());
  EXPECT_NEAR(told_by(half.in(at::kFloat)).at(0).item<double>(), std::exp(12.0), 0.1);
  EXPECT_EQ(CallAgain(row("aten::exp", ""), {at::full({1}, 89.0, at::kBFloat16)}).one_up(), at::kDouble);
  EXPECT_FALSE(CallAgain(row("aten::exp", ""), {at::full({1}, 1.0, at::kDouble)}).one_up());
}

TEST(CallAgain, WhatAViewGivesIsNotTheCallersMemory) {
  const at::Tensor x = at::ones({2, 2});
  const auto given = told_by(CallAgain(row("aten::t", ""), {x}).as_it_was());
  ASSERT_EQ(given.size(), 1U);
  given[0].fill_(7);
  EXPECT_TRUE(at::equal(x, at::ones({2, 2})));
}

TEST(CallAgain, OneCallOfAnOpOnListsIsGivenListsOfOne) {
  const auto made = told_by(CallAgain(row("aten::_foreach_sqrt", ""), {at::full({2}, 9.0)}).as_it_was());
  ASSERT_EQ(made.size(), 1U);
  EXPECT_TRUE(at::equal(made[0], at::full({2}, 3.0)));
}

TEST(CallAgain, InputsCanBeMovedInTheFormatTheyWereRaisedTo) {
  const CallAgain call = CallAgain(row("aten::sqrt", ""), {at::full({1}, 4.0)}).raised_to(at::kDouble);
  const auto moved = told_by(
      call.in(at::kDouble, [](const at::Tensor& t) { return can_be_moved(t) ? t + 5 : at::Tensor(); }));
  ASSERT_EQ(moved.size(), 1U);
  EXPECT_DOUBLE_EQ(moved[0].item<double>(), 3);
}

TEST(CallAgain, NothingIsCalledWhoseResultsDontFollowFromItsInputs) {
  const at::Tensor x = at::ones({4});
  const CallAgain refused[] = {
      CallAgain(row("aten::dropout", ""), {x, 0.5, true}),
      CallAgain(row("aten::bernoulli", ""), {x, c10::IValue()}),
      CallAgain(row("aten::empty_like", ""), {x, {}, {}, {}, {}, {}}),
      CallAgain(row("aten::sqrt", "", kOpOpaque), {x}),
      CallAgain(row("aten::sqrt", "", kOpFailed), {x}),
      CallAgain(row("nowhere::known", ""), {x}),
      CallAgain(row("aten::sqrt", ""), {x, x}),
  };
  for (const CallAgain& call : refused) {
    EXPECT_FALSE(call.as_it_was());
    EXPECT_FALSE(call.in(at::kDouble));
    EXPECT_FALSE(call.one_up());
    EXPECT_FALSE(call.raised_to(at::kDouble).in(at::kDouble));
  }
}

TEST(CallAgain, AnArgumentWithoutACounterpartGivesNothing) {
  const CallAgain call(row("aten::_to_sparse", ""), {at::ones({2}), {}, {}, {}});
  EXPECT_NO_THROW((void)call.in(at::kDouble));
}

}  // namespace
}  // namespace nanquest
