// Updates that get something new, and those that don't.
#include "probe/step/update_risk.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace nanquest {
namespace {

class UpdateRiskTest : public ::testing::Test {
 protected:
  UpdateRiskTest() {
    for (at::Tensor& each : parameters_) {
      each = at::zeros({4}).requires_grad_(true);
      gate_.watch(each);
    }
  }

  /// One step whose gradients are these numbers in every element.
  bool step(double first, double second) {
    parameters_[0].mutable_grad() = at::full({4}, first);
    parameters_[1].mutable_grad() = at::full({4}, second);
    return measured();
  }
  bool measured() {
    (void)gate_.run(1);
    return risk_.judge(gate_);
  }

  at::Tensor parameters_[2];
  GradientGate gate_;
  UpdateRisk risk_;
};

TEST_F(UpdateRiskTest, UsualStepsAreNone) {
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(step(1 + i % 7, 0)) << i;
}

TEST_F(UpdateRiskTest, AGradientOfZeros) {
  EXPECT_FALSE(step(1, 1));
  EXPECT_TRUE(step(1, 0));
  EXPECT_FALSE(step(1, 0));
}

TEST_F(UpdateRiskTest, TheFirstGradientOfAParameter) {
  parameters_[0].mutable_grad() = at::ones({4});
  EXPECT_FALSE(measured());
  EXPECT_TRUE(step(1, 1));
}

TEST_F(UpdateRiskTest, AGradientFarLargerThanAnyBefore) {
  EXPECT_FALSE(step(1, 1));
  EXPECT_FALSE(step(900, 1));
  EXPECT_TRUE(step(1, 1e24));
  EXPECT_FALSE(step(1, 1));
  EXPECT_FALSE(step(1, 1e24));
}

TEST_F(UpdateRiskTest, AChangeButNotWhatIsChangedBeforeEveryUpdate) {
  EXPECT_FALSE(step(1, 1));
  risk_.changed();
  EXPECT_TRUE(step(1, 1));
  EXPECT_FALSE(step(1, 1));
  for (int i = 0; i < 5; ++i) {
    risk_.changed();
    EXPECT_EQ(step(1, 1), i == 0) << i;
  }
}

TEST_F(UpdateRiskTest, AHabitIsNone) {
  int news = 0;
  for (int i = 0; i < 100; ++i) news += step(1, i % 2);
  EXPECT_EQ(news, 4);
}

TEST_F(UpdateRiskTest, InTheLongRunOneUpdateInSixtyFour) {
  int news = 0;
  for (int i = 0; i < 64 * 50; ++i) {
    if (i % 2 == 0) risk_.changed();
    news += step(1, 1);
  }
  EXPECT_GT(news, 50);
  EXPECT_LE(news, 16 + 50);
}

}  // namespace
}  // namespace nanquest
