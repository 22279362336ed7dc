#include "replay/spike/decision.h"

#include <gtest/gtest.h>

namespace nanquest {
namespace {

/// Other data do not help, the batch is in range without the last update, and not without the one before.
SpikeFindings one_update() {
  SpikeFindings f;
  f.data.verdict = DataResult::Verdict::other_batch_too;
  f.state.steps = 32;
  f.state.earlier = Standing::in_range;
  f.state.left_out = 1;
  f.state.control_failed = true;
  return f;
}

/// The same, and that update had a raised learning rate.
SpikeFindings raised_rate(Aftermath after) {
  SpikeFindings f = one_update();
  f.state.rate = 0.005;
  f.state.rate_before = 1.5;
  f.after = after;
  return f;
}

TEST(SpikeDecision, ARaisedRateIsDivergenceOnlyIfTheLossLeftForGood) {
  EXPECT_EQ(decide(raised_rate(Aftermath::left)), Label::divergence);
  EXPECT_EQ(decide(raised_rate(Aftermath::came_back)), Label::spike_state);
  EXPECT_EQ(decide(raised_rate(Aftermath::open)), Label::unknown);
}

TEST(SpikeDecision, AnUpdateWithTheUsualRateIsStateWhateverFollows) {
  for (const Aftermath after : {Aftermath::open, Aftermath::came_back, Aftermath::left}) {
    SpikeFindings f = one_update();
    f.after = after;
    EXPECT_EQ(decide(f), Label::spike_state);
    f.state.placebo_helped = true;  // the last bit of a weight does as much
    EXPECT_EQ(decide(f), Label::unknown);
  }
}

TEST(SpikeDecision, ManyUpdatesNeedTheSameAsARate) {
  SpikeFindings f = one_update();
  f.state.left_out = 16;
  EXPECT_EQ(decide(f), Label::unknown);
  f.after = Aftermath::left;
  EXPECT_EQ(decide(f), Label::unknown) << "no smaller rate helps";
  f.state.slower = "lr=*0.1";
  EXPECT_EQ(decide(f), Label::divergence);
  f.after = Aftermath::came_back;
  EXPECT_EQ(decide(f), Label::spike_state);
}

TEST(SpikeDecision, WhereOtherDataHelpAsWellItIsUnknown) {
  SpikeFindings f = raised_rate(Aftermath::left);
  f.data.verdict = DataResult::Verdict::samples;
  EXPECT_EQ(decide(f), Label::unknown);
  f.state.earlier = Standing::out_of_range;
  f.state.rate = {};
  EXPECT_EQ(decide(f), Label::spike_data);
}

TEST(SpikeDecision, WithoutATapeOnlyFewSamplesAreNamed) {
  SpikeFindings f;
  f.state.not_tried = "the file holds no tape";
  f.data.verdict = DataResult::Verdict::samples;
  f.data.of = 16;
  f.data.samples = {1, 5, 7, 12};
  EXPECT_EQ(decide(f), Label::spike_data);
  f.data.samples.push_back(15);
  EXPECT_EQ(decide(f), Label::unknown);
}

}  // namespace
}  // namespace nanquest
