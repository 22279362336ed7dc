#include "probe/record/governor.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace nanquest {
namespace {

constexpr std::uint64_t kBytes = 2'000'000;

record::UpdateCost cost(double seconds, bool grew = false, double copying = 0) {
  record::UpdateCost cost;
  cost.bytes = kBytes;
  cost.seconds = seconds;
  cost.copying = copying;
  cost.grew = grew;
  return cost;
}

/// Steps of one second each; returns how many of them were kept.
int kept_of(UpdateGovernor& governor, int steps, const record::UpdateCost& each) {
  int kept = 0;
  for (int i = 0; i < steps; ++i) {
    if (governor.wants(kBytes)) {
      ++kept;
      governor.kept(each);
    }
    governor.step_took(1);
  }
  return kept;
}

TEST(UpdateGovernor, NothingIsCopiedBeforeAStepsTimeIsKnown) {
  UpdateGovernor governor({});
  EXPECT_FALSE(governor.wants(kBytes));
  governor.step_took(1);
  EXPECT_TRUE(governor.wants(kBytes));
}

TEST(UpdateGovernor, WhatCostsLittleIsKeptInEveryStep) {
  UpdateGovernor governor({.time_share = 0.01});
  EXPECT_EQ(kept_of(governor, 100, cost(0.009)), 99);
  EXPECT_EQ(governor.complaint(), "");
}

TEST(UpdateGovernor, ATrifleIsKeptWhateverShareOfAShortStepItIs) {
  const auto kept = [](double seconds, double share, std::uint64_t bytes = kBytes) {
    UpdateGovernor governor({.time_share = share});
    int times = 0;
    for (int i = 0; i < 100; ++i) {
      if (governor.wants(bytes)) ++times, governor.kept(cost(seconds));
      governor.step_took(0.001);
    }
    return times;
  };
  EXPECT_EQ(kept(90e-6, 0.01), 99);
  EXPECT_EQ(kept(190e-6, 0.01), 51);        // the first three, then every second one
  EXPECT_EQ(kept(190e-6, 0.01, 1000), 99);  // of a small model more is noise
  EXPECT_EQ(kept(90e-6, 0), 1);
}

TEST(UpdateGovernor, APauseOfTheMachineInTheFirstUpdateIsNoMeasure) {
  UpdateGovernor governor({.time_share = 0.01});
  int kept = 0;
  for (int i = 0; i < 100; ++i) {
    if (governor.wants(kBytes)) governor.kept(cost(kept++ == 0 ? 0.02 : 90e-6));
    governor.step_took(0.01);
  }
  EXPECT_EQ(kept, 99);
  EXPECT_EQ(governor.complaint(), "");
}

TEST(UpdateGovernor, CopyingCountsTwiceForWhatItDrivesOutOfTheCaches) {
  UpdateGovernor recording({.time_share = 0.01}), copying({.time_share = 0.01});
  EXPECT_EQ(kept_of(recording, 1001, cost(0.1)), 100);
  EXPECT_EQ(kept_of(copying, 1001, cost(0.1, /*grew=*/false, /*copying=*/0.1)), 50);
}

TEST(UpdateGovernor, KeepingStaysBelowItsShare) {
  UpdateGovernor governor({.time_share = 0.01});
  const double spent = 0.2 * kept_of(governor, 2000, cost(0.2));
  EXPECT_LE(spent, 0.011 * 2000);
  EXPECT_GE(spent, 0.009 * 2000);
  EXPECT_NE(governor.complaint().find("every 20 steps only: it takes 200.0 ms of a step's 1000.0 ms"),
            std::string::npos)
      << governor.reason();
  EXPECT_EQ(governor.complaint(), "");  // only once
}

TEST(UpdateGovernor, MemoryTouchedForTheFirstTimeIsNotTouchedInEveryStepIfThatTakesLong) {
  UpdateGovernor governor({.time_share = 0.01});
  governor.step_took(1);
  ASSERT_TRUE(governor.wants(kBytes));
  governor.kept(cost(3, /*grew=*/true));
  EXPECT_EQ(kept_of(governor, 63, cost(0.001)), 0);
  EXPECT_EQ(kept_of(governor, 10, cost(0.001)), 10);  // and it says nothing about what follows
  EXPECT_EQ(governor.reason(), "");
}

TEST(UpdateGovernor, ShortFirstTouchesDoNotCount) {
  UpdateGovernor governor({.time_share = 0.01});
  governor.step_took(0.001);
  ASSERT_TRUE(governor.wants(kBytes));
  governor.kept(cost(0.05, /*grew=*/true));
  EXPECT_TRUE(governor.wants(kBytes));
}

TEST(UpdateGovernor, WhatWouldBeKeptTooSeldomIsNotKept) {
  UpdateGovernor governor({.time_share = 0.01});
  EXPECT_EQ(kept_of(governor, 1000, cost(0.7)), 1);
  EXPECT_NE(governor.complaint().find("in no step"), std::string::npos);
  EXPECT_FALSE(governor.affords(kBytes));
  EXPECT_TRUE(governor.has_room(kBytes));  // for an update that is worth its time
}

TEST(UpdateGovernor, NeitherMoreMemoryThanThereIsNorOfADeviceThatTellsNothing) {
  UpdateGovernor large({}), device({});
  large.step_took(1);
  device.step_took(1);
  EXPECT_FALSE(large.wants(std::uint64_t{1} << 50));
  EXPECT_NE(large.complaint().find("free memory"), std::string::npos);
  EXPECT_FALSE(device.wants(kBytes, at::Device(at::kXPU, 0)));
  EXPECT_NE(device.complaint().find("on xpu:0"), std::string::npos);
}

TEST(UpdateGovernor, ProcessesOfOneMachineShareItsMemory) {
  const auto alone = static_cast<double>(free_memory());
  ASSERT_GT(alone, 0);
  EXPECT_EQ(processes_here(), 1);
  setenv("SLURM_STEP_TASKS_PER_NODE", "2(x3)", 1);
  EXPECT_EQ(processes_here(), 2);
  setenv("LOCAL_WORLD_SIZE", "4", 1);
  EXPECT_EQ(processes_here(), 4);
  // Free memory changes while other programs run.
  EXPECT_NEAR(static_cast<double>(free_memory()), alone / 4, alone / 16);
  UpdateGovernor governor({});
  governor.step_took(1);
  // Three times that is kept: less than a quarter of all, more than a quarter of a fourth.
  EXPECT_FALSE(governor.wants(static_cast<std::uint64_t>(alone / 24)));
  EXPECT_NE(governor.complaint().find("of free memory that each of 4 processes has"), std::string::npos);
  unsetenv("LOCAL_WORLD_SIZE");
  unsetenv("SLURM_STEP_TASKS_PER_NODE");
  EXPECT_TRUE(UpdateGovernor({}).affords(static_cast<std::uint64_t>(alone / 24)));
}

}  // namespace
}  // namespace nanquest
