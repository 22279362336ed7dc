// What is beyond rounding, by hand; and last bits.
#include "replay/diff/rounding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "replay/diff/differ.h"
#include "tests/replay/trace/programs.h"

namespace nanquest::diff {
namespace {

TEST(Apart, ByHand) {
  const Apart found = apart(at::tensor({3.0f, 4.0f}), at::tensor({3.0f, 4.5f}));
  EXPECT_DOUBLE_EQ(found.whole, 0.1);   // 0.5 / 5
  EXPECT_DOUBLE_EQ(found.most, 0.125);  // 0.5 / 4
  EXPECT_FALSE(found.kind);
  EXPECT_FALSE(apart(at::tensor({1.0f}), at::tensor({1.0f})).any());
  EXPECT_TRUE(apart(at::ones({2}), at::ones({1, 2})).kind);
  EXPECT_TRUE(apart(at::tensor({1.0f}), at::tensor({INFINITY})).kind);
  const Apart integers = apart(at::tensor({1, 2, 3, 4}), at::tensor({1, 2, 3, 5}));
  EXPECT_DOUBLE_EQ(integers.whole, 0.25);
  EXPECT_DOUBLE_EQ(integers.most, 1);
  EXPECT_TRUE(std::isinf(apart(at::zeros({2}), at::ones({2})).whole));
}

TEST(Beyond, RoundingIsEightTimesWhatLastBitsMakeAndTwoUnits) {
  const Apart limit{1e-6, 1e-6, false};
  EXPECT_FALSE(beyond({7e-6, 7e-6, false}, limit, at::kFloat, at::kFloat));
  EXPECT_TRUE(beyond({9e-6, 7e-6, false}, limit, at::kFloat, at::kFloat));
  EXPECT_TRUE(beyond({7e-6, 9e-6, false}, limit, at::kFloat, at::kFloat));
  EXPECT_FALSE(beyond({0x1p-22, 0x1p-22, false}, {}, at::kFloat, at::kFloat));
  EXPECT_TRUE(beyond({0x1p-21, 0x1p-21, false}, {}, at::kFloat, at::kFloat));
  EXPECT_FALSE(beyond({0x1p-7, 0x1p-7, false}, {}, at::kFloat, at::kBFloat16));  // the coarser of both
  EXPECT_TRUE(beyond({0, 0, true}, limit, at::kFloat, at::kFloat));
}

TEST(LastBits, NumbersMoveByOneUnitAndExactOnesStay) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16}) {
    const at::Tensor before = at::linspace(0.1, 3.3, 101, at::kDouble).to(type);
    at::Tensor after = before.clone();
    move_last_bits(after, 7);
    const TensorDifference d = tensor_difference(before, after);
    EXPECT_EQ(d.max_ulp, 1);
    EXPECT_GT(d.different, 70u);
    at::Tensor exact = at::tensor({0.0, 1.0, -2.0, 0.5, INFINITY, -INFINITY}, at::kDouble).to(type);
    const at::Tensor same = exact.clone();
    move_last_bits(exact, 7);
    EXPECT_TRUE(at::equal(exact, same));
  }
  at::Tensor integers = at::arange(5), expanded = at::full({1}, 0.3f).expand({4});
  move_last_bits(integers, 7);
  move_last_bits(expanded, 7);
  EXPECT_TRUE(at::equal(integers, at::arange(5)));
}

TEST(CompareSteps, TheSameStepIsAlikeAndAnotherSeedIsAnotherStateOrBatch) {
  using nanquest::testing::program;
  using nanquest::testing::record;
  using nanquest::testing::replayer_of;
  const Replayer a = replayer_of(record(program("autocast_fp16").make(1, at::kFloat)));
  const Replayer b = replayer_of(record(program("autocast_fp16").make(2, at::kFloat)));
  const auto same = compare_steps(a, a, {.perturbations = 2});
  ASSERT_TRUE(same.ok());
  EXPECT_TRUE(same->alike());
  const auto other = compare_steps(a, b, {.perturbations = 2});
  ASSERT_TRUE(other.ok());
  ASSERT_FALSE(other->alike());
  EXPECT_TRUE(other->findings[0].kind == Kind::batch || other->findings[0].kind == Kind::state);
  EXPECT_TRUE(other->complete) << to_text(*other, true);
}

}  // namespace
}  // namespace nanquest::diff
