// How long a step's record is held while its gate has not answered.
#include "probe/attach/rounds.h"

#include <gtest/gtest.h>

namespace nanquest::attach {
namespace {

class RoundsTest : public ::testing::Test {
 protected:
  RoundsTest() {
    rounds_.begin(/*watch=*/false);
    number_ = rounds_.number();
  }
  /// An optimizer's turn, whose update is made before the gate has answered.
  void update() { EXPECT_FALSE(rounds_.begin_update(0, at::kCPU, /*asked=*/false, /*hold=*/true)); }

  Rounds rounds_{/*keep_steps=*/0, /*keep_share=*/0.01, /*memory_share=*/0.25, {}};
  std::int64_t number_ = -1;
};

TEST_F(RoundsTest, IsHeldUntilTheGateHasAnswered) {
  update();
  rounds_.end(/*keep=*/false, {});
  EXPECT_NE(rounds_.kept(number_), nullptr);
  rounds_.answered(number_, /*healthy=*/true);
  EXPECT_EQ(rounds_.kept(number_), nullptr);
}

TEST_F(RoundsTest, IsNotHeldIfItAnswersBeforeTheStepEnds) {
  update();
  rounds_.answered(number_, /*healthy=*/true);
  rounds_.end(/*keep=*/false, {});
  EXPECT_TRUE(rounds_.keeps_none());
}

TEST_F(RoundsTest, IsHeldForTheSecondOfTwoOptimizers) {
  update();
  update();
  rounds_.answered(number_, /*healthy=*/true);
  rounds_.end(/*keep=*/false, {});
  EXPECT_NE(rounds_.kept(number_), nullptr);
}

}  // namespace
}  // namespace nanquest::attach
