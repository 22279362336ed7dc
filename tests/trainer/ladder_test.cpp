// The ladder alone, in a loop outside nanquest: what each answer means, and that it undoes and counts.
#include <ATen/ATen.h>

#include <functional>

#include "tests/trainer/loop_fixture.h"
#include "trainer/loop/ladder.h"

namespace nanquest::trainer {
namespace {

using Next = Ladder::Next;

/// One weight, changed by hand.
struct Hand {
  at::Tensor weight = at::zeros({2, 2}).set_requires_grad(true), buffer = at::ones({2});
  std::unique_ptr<Optimizer> adamw = std::move(*make_adamw({{"w", weight}}, {}));
  Counters counters;
  std::vector<std::string> told;

  Ladder ladder(const LadderOptions& options, at::ScalarType format = at::kHalf) {
    return Ladder(options, {.initial = 8}, format,
                  Learned(
                      *adamw,
                      [this] {
                        return NamedTensors{{"b", buffer}};
                      },
                      at::kCPU),
                  counters, {.say = [this](const std::string& line) { told.push_back(line); }});
  }
  /// A step that is applied: the weight gets `value`.
  void good(Ladder& ladder, double value) {
    ASSERT_EQ(ladder.keep().next, Next::advance);
    ASSERT_EQ(ladder.after({}).next, Next::update);
    at::NoGradGuard no_grad;
    weight.fill_(value);
    ASSERT_EQ(ladder.updated({}).next, Next::advance);
  }
  static Ladder::Answer bad(Ladder& ladder, Gate gate = Gate::non_finite, bool corrupt = false) {
    (void)ladder.keep();
    StepReport report;
    report.gate = gate;
    report.state_corrupt = corrupt;
    return ladder.after(report);
  }
  double value() const { return weight.flatten()[0].item<double>(); }
};

TEST(LadderAlone, FallsBackOnceThenLeavesOutThenGoesBackThenStops) {
  Hand hand;
  Ladder ladder = hand.ladder({.skip_limit = 2, .rollback_limit = 2, .ring_every = 2});
  EXPECT_EQ(ladder.loss_scale(), 8);
  for (int step = 0; step < 5; ++step)
    hand.good(ladder, step + 1);  // states are kept before steps 0, 2 and 4
  EXPECT_EQ(Hand::bad(ladder).next, Next::again);
  EXPECT_EQ(ladder.format(), at::kFloat);
  EXPECT_EQ(ladder.loss_scale(), 1);
  EXPECT_EQ(hand.counters.backoff, 0.5);
  const Ladder::Answer skipped = Hand::bad(ladder);
  EXPECT_EQ(skipped.next, Next::advance);
  EXPECT_TRUE(skipped.dropped);
  EXPECT_FALSE(skipped.went_back);
  const Ladder::Answer back = Hand::bad(ladder);
  EXPECT_TRUE(back.dropped && back.went_back);
  EXPECT_EQ(hand.counters.optimizer_step, 4);
  EXPECT_EQ(hand.value(), 4);
  (void)Hand::bad(ladder);
  EXPECT_TRUE(Hand::bad(ladder).went_back);
  EXPECT_EQ(hand.counters.optimizer_step, 2) << "the second goes two states back";
  EXPECT_EQ(hand.value(), 2);
  (void)Hand::bad(ladder);
  const Ladder::Answer end = Hand::bad(ladder);
  EXPECT_EQ(end.next, Next::stop);
  EXPECT_TRUE(end.dropped);
  EXPECT_EQ(ladder.keep().next, Next::stop);
  EXPECT_EQ(hand.counters.skipped, 6);
  EXPECT_EQ(hand.counters.incidents, 7);
  EXPECT_EQ(hand.counters.backoff, 0.5) << "taken once";
}

TEST(LadderAlone, AScaleThatIsTooLargeIsHalvedAndNoIncidentUntilItsFloor) {
  Hand hand;
  Ladder ladder = hand.ladder({.policy = Policy::skip});
  for (const double scale : {4.0, 2.0, 1.0}) {
    const Ladder::Answer again = Hand::bad(ladder, Gate::scale_overflow);
    EXPECT_EQ(again.next, Next::again);
    EXPECT_EQ(again.why, "");
    EXPECT_EQ(ladder.loss_scale(), scale);
  }
  EXPECT_EQ(hand.counters.incidents, 0);
  EXPECT_TRUE(Hand::bad(ladder, Gate::scale_overflow).dropped);
  EXPECT_EQ(ladder.loss_scale(), 8) << "it was not the scale's fault: as before the batch";
}

TEST(LadderAlone, ARetryIsInFp32AndTheRunIsNot) {
  Hand hand;
  Ladder ladder = hand.ladder({.policy = Policy::retry_fp32});
  EXPECT_EQ(Hand::bad(ladder).next, Next::again);
  EXPECT_EQ(ladder.format(), at::kFloat);
  EXPECT_EQ(ladder.run_format(), at::kHalf);
  hand.good(ladder, 1);
  EXPECT_EQ(ladder.format(), at::kHalf);
  EXPECT_EQ(Hand::bad(ladder).next, Next::again);
  EXPECT_TRUE(Hand::bad(ladder).dropped) << "it failed in fp32 too";
  EXPECT_EQ(hand.counters.incidents, 2) << "a retry is no incident of its own";
  EXPECT_EQ(ladder.format(), at::kHalf);
}

TEST(LadderAlone, WhatIsCorruptIsPutBackWithBuffersMomentsAndGenerators) {
  Hand hand;
  Ladder ladder = hand.ladder({.policy = Policy::skip}, at::kFloat);
  (void)ladder.keep();
  const at::Tensor drawn = at::rand({4});
  const TrainState before = [&] {
    TrainState state = ladder.present();
    for (auto& [name, t] : state.tensors) t = t.clone();
    return state;
  }();
  {
    at::NoGradGuard no_grad;
    hand.weight.fill_(NAN);
    hand.buffer.fill_(INFINITY);
    for (auto& [name, t] : hand.adamw->state()) t.fill_(3);
  }
  const Ladder::Answer answer = Hand::bad(ladder, Gate::non_finite, true);
  EXPECT_TRUE(answer.went_back);
  EXPECT_TRUE(ladder.was_corrupt());
  EXPECT_EQ(hand.value(), 0);
  EXPECT_TRUE(at::equal(hand.buffer, at::ones({2})));
  EXPECT_TRUE(at::equal(at::rand({4}), drawn)) << "the generator is as it was when the state was kept";
  ASSERT_TRUE(ladder.restore(before));
  EXPECT_FALSE(at::equal(at::rand({4}), drawn));
}

TEST(LadderAlone, AnUpdateThatSpoilsTheWeightsIsABadStepToo) {
  Hand hand;
  Ladder ladder = hand.ladder({.policy = Policy::skip}, at::kFloat);
  (void)ladder.keep();
  ASSERT_EQ(ladder.after({}).next, Next::update);
  StepReport spoiled;
  spoiled.gate = Gate::non_finite;
  EXPECT_TRUE(ladder.updated(spoiled).dropped);
  EXPECT_EQ(hand.counters.optimizer_step, 0);
}

TEST(LadderAlone, OptionsThatMakeNoSenseAreNamed) {
  EXPECT_TRUE(check(LadderOptions{}));
  EXPECT_NE(check(LadderOptions{.lr_backoff = 0}).error().message.find("lr-backoff"), std::string::npos);
  EXPECT_NE(check(LadderOptions{.ring_every = 0}).error().message.find("ring-every"), std::string::npos);
}

}  // namespace
}  // namespace nanquest::trainer
