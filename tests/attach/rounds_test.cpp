// How long a step's record is held while its gate has not answered; names of the batch.
#include "probe/attach/rounds.h"

#include <ATen/ATen.h>
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

TEST(NamedList, NamesOfManyTensorsDifferAndThoseOfFreedOnesAreReused) {
  NamedList list;
  std::vector<at::Tensor> passes;  // of a rollout: each with an input
  for (int i = 0; i < 20; ++i) {
    passes.push_back(at::ones({2}));
    EXPECT_EQ(list.add("input", passes.back()), static_cast<std::size_t>(i));
  }
  EXPECT_EQ(list.name(0), "input");
  EXPECT_EQ(list.name(19), "input#20");
  passes[3].reset();
  passes[19].reset();
  const at::Tensor again = at::ones({2}), once_more = at::ones({2}), last = at::ones({2});
  EXPECT_EQ(list.name(list.add("input", again)), "input#4");
  EXPECT_EQ(list.name(list.add("input", once_more)), "input#20");
  EXPECT_EQ(list.name(list.add("input", last)), "input#21");
  EXPECT_TRUE(list.named("input#20").is_alias_of(once_more));
}

}  // namespace
}  // namespace nanquest::attach
