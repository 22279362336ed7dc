// Steps by which weights are written when: the loops that people write, and the number that their logs say.
#include "probe/step/step_counter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace nanquest {
namespace {

/// Runs "G G C GC": a letter is an update of that network's weights, a forward pass before each; "+" in front
/// of a letter leaves the forward pass out. Returns the number of each update.
std::vector<std::int64_t> steps_of(const std::string& loop) {
  StepCounter counter;
  std::vector<std::int64_t> steps;
  bool forward = true;
  for (const char c : loop) {
    if (c == ' ') continue;
    if (c == '+') {
      forward = false;
      continue;
    }
    if (c == 'x') {
      (void)counter.begin();
      counter.give_up();
      continue;
    }
    if (forward) (void)counter.begin();
    forward = true;
    const std::int64_t first = 10 * c;
    steps.push_back(counter.update({first, first + 1, first + 2}));
  }
  return steps;
}

using Steps = std::vector<std::int64_t>;

TEST(StepCounter, OneOptimizer) {
  EXPECT_EQ(steps_of("A A A A"), (Steps{0, 1, 2, 3}));
}

TEST(StepCounter, TwoOptimizersAfterOneBackward) {
  EXPECT_EQ(steps_of("A+B A+B A+B"), (Steps{0, 0, 1, 1, 2, 2}));
}

TEST(StepCounter, TwoNetworksInTurn) {
  EXPECT_EQ(steps_of("CG CG CG"), (Steps{0, 0, 1, 1, 2, 2}));
}

TEST(StepCounter, CriticTrainedMoreOften) {
  EXPECT_EQ(steps_of("CCCG CCCG CCCG"), (Steps{0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8}));
}

TEST(StepCounter, NetsOneAfterTheOtherShareNoStep) {
  EXPECT_EQ(steps_of("AAAAAAAAAA BBB"), (Steps{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
}

TEST(StepCounter, APartThatJoinsLate) {
  EXPECT_EQ(steps_of("GGGGGGGGGG GD GD GD"), (Steps{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 12, 13, 13}));
}

TEST(StepCounter, GuessesWhatComesNext) {
  StepCounter counter;
  for (int round = 0; round < 3; ++round) {
    const std::int64_t before_critic = counter.begin();
    EXPECT_EQ(counter.update({1}), before_critic);
    const std::int64_t before_generator = counter.begin();
    const std::int64_t generator = counter.update({2});
    EXPECT_EQ(generator, round);
    if (round > 0) {
      EXPECT_EQ(before_generator, generator) << "it was so in the round before";
    }
  }
  EXPECT_EQ(counter.made(), 3);
}

TEST(StepCounter, AnotherOptimizerForTheSameWeights) {
  StepCounter counter;
  EXPECT_EQ(counter.update({1, 2}), 0);
  (void)counter.begin();
  EXPECT_EQ(counter.update({2, 1}), 1) << "a second stage with an optimizer of its own";
}

TEST(StepCounter, AStepThatIsGivenUpCounts) {
  EXPECT_EQ(steps_of("A x A x x A"), (Steps{0, 2, 5}));
}

TEST(StepCounter, Made) {
  StepCounter counter;
  EXPECT_EQ(counter.made(), 0);
  (void)counter.begin();
  EXPECT_EQ(counter.made(), 0);
  (void)counter.update({1});
  EXPECT_EQ(counter.made(), 1);
  (void)counter.begin();
  EXPECT_EQ(counter.made(), 1);
  EXPECT_EQ(counter.step(), 1);
}

// A weight that is mended by hand now and then is no part of the model that is updated less often.
TEST(StepCounter, WhatIsWrittenByHandNowAndThenIsOfTheStepThatRuns) {
  StepCounter counter;
  for (std::int64_t step = 0; step < 9; ++step) {
    EXPECT_EQ(counter.begin(), step);
    if (step == 5 || step == 7) {
      EXPECT_EQ(counter.update({kByHand}), step);
    }
    EXPECT_EQ(counter.update({0, 1}), step);
  }
  EXPECT_EQ(counter.made(), 9);
}

}  // namespace
}  // namespace nanquest
