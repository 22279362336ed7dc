// Differences of tensors, checked by hand, and of runs.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "replay/trace/compare.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::testing {
namespace {

TEST(TensorDifference, ByHand) {
  const auto a = at::tensor({1.0f, 2.0f, -4.0f, 0.0f});
  const auto b = at::tensor({1.0, 2.5, -5.0, 0.0}, at::kDouble);
  const TensorDifference d = tensor_difference(a, b);
  EXPECT_EQ(d.count, 4u);
  EXPECT_EQ(d.different, 2u);
  EXPECT_DOUBLE_EQ(d.max_abs, 1.0);
  EXPECT_DOUBLE_EQ(d.max_rel, 0.2);  // 0.5 / 2.5 and 1 / 5
  EXPECT_EQ(d.worst, 2);
  EXPECT_EQ(d.max_ulp, std::pow(2.0, 21));  // 2 -> 2.5 and 4 -> 5: a quarter of a binade of 2^23 steps
}

TEST(TensorDifference, UlpsCountNeighboursInTheRecordedFormat) {
  const auto half = at::tensor({1.0, -0.0, 65504.0}, at::kDouble).to(at::kHalf);
  EXPECT_EQ(tensor_difference(half, at::tensor({1.0 + 1.0 / 1024, 0.0, 65504.0}, at::kDouble)).max_ulp, 1);
  EXPECT_EQ(tensor_difference(half, at::tensor({1.0, 0.0, 65472.0}, at::kDouble)).max_ulp, 1);
  // Less than half a step away: other values, the same number of the format.
  const TensorDifference near = tensor_difference(half, at::tensor({1.0 + 1e-5, 0.0, 65504.0}, at::kDouble));
  EXPECT_EQ(near.max_ulp, 0);
  EXPECT_EQ(near.different, 1u);
  const auto single = at::tensor({1.0f, -1.0f});
  const auto next = at::tensor({std::nextafter(1.0f, 2.0f), std::nextafter(-1.0f, -2.0f)});
  EXPECT_EQ(tensor_difference(single, next).max_ulp, 1);
  const auto twice = at::tensor({1.0, -3.0}, at::kDouble);
  EXPECT_EQ(tensor_difference(twice, at::tensor({std::nextafter(1.0, 2.0), -3.0}, at::kDouble)).max_ulp, 1);
  // From the smallest negative to the smallest positive subnormal: through -0 and +0, which count as one
  // value.
  EXPECT_EQ(tensor_difference(at::tensor({-1e-45f}), at::tensor({1e-45f})).max_ulp, 2);
}

TEST(TensorDifference, NonFiniteAndIntegers) {
  const float nan = NAN, inf = INFINITY;
  TensorDifference d = tensor_difference(at::tensor({nan, inf, 1.0f}), at::tensor({nan, inf, 1.0f}));
  EXPECT_EQ(d.different, 0u);
  EXPECT_EQ(d.non_finite_recorded, 2u);
  d = tensor_difference(at::tensor({1.0f, inf, 3.0f}), at::tensor({1.5f, 2.0f, 30.0f}));
  EXPECT_EQ(d.non_finite_other, 0u);
  EXPECT_EQ(d.worst, 1);
  EXPECT_EQ(d.max_abs, 27);
  const std::int64_t big = (std::int64_t{1} << 53);
  d = tensor_difference(at::tensor({big}, at::kLong), at::tensor({big + 1}, at::kLong));
  EXPECT_EQ(d.different, 1u);
  EXPECT_EQ(tensor_difference(at::ones({1}, at::kBool), at::zeros({1}, at::kBool)).different, 1u);
}

TEST(Compare, TheSameRunDiffersNowhere) {
  const Replayer replayer = replayer_of(record(program("autocast_fp16").make(1, at::kFloat)));
  const auto result = compare(replayer, {});
  ASSERT_TRUE(result.ok()) << result.error().text();
  EXPECT_GT(result->rows.size(), 30u);
  EXPECT_EQ(result->first_difference, kNone);
  EXPECT_EQ(result->first_finiteness_change, kNone);
}

TEST(Compare, WideRunsDifferFromTheFirstRounding) {
  const Replayer replayer = replayer_of(record(program("autocast_fp16").make(1, at::kFloat)));
  RunOptions options;
  options.precision = Precision::fp32;
  const auto result = compare(replayer, options);
  ASSERT_TRUE(result.ok());
  ASSERT_NE(result->first_difference, kNone);
  EXPECT_EQ(result->first_finiteness_change, kNone);
  // Everything before the first cast to fp16 is the same in fp32.
  for (std::int32_t op = 0; op < result->first_difference; ++op)
    for (const CompareRow& row : result->rows) EXPECT_TRUE(row.op != op || row.difference.different == 0);
}

TEST(Compare, ShowsWhereFinitenessChanges) {
  const at::Tensor x = at::full({4}, 300.0, at::kHalf);
  Step step;
  step.state.batch = {{"x", x}};
  step.run = [=] { return (x * x).sum(); };
  const Replayer replayer = replayer_of(record(step));
  RunOptions options;
  options.precision = Precision::fp32;
  const auto result = compare(replayer, options);
  ASSERT_TRUE(result.ok());
  ASSERT_NE(result->first_finiteness_change, kNone);
  EXPECT_EQ(replayer.doc().ops[static_cast<std::size_t>(result->first_finiteness_change)].name, "aten::mul");
}

TEST(Compare, MissingDataIsAnError) {
  const Recording recording = record(program("mlp").make(1, at::kFloat));
  auto replayer = Replayer::from_memory(recording.doc, {});
  ASSERT_TRUE(replayer.ok());
  const auto result = compare(*replayer, {});
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message.find("is not among the given tensors"), std::string::npos);
}

}  // namespace
}  // namespace nanquest::testing
