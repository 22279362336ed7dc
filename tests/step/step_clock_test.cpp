// How long steps take by the host's clock. Devices' events: tests/device.
#include "probe/step/step_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace nanquest {
namespace {

void pass(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(StepClock, MeasuresToTheEndOfTheLastUpdate) {
  StepClock clock;
  clock.begins(c10::kCPU, /*watched=*/true);
  clock.ends();
  pass(20);
  clock.ends();
  EXPECT_TRUE(clock.taken().empty());  // another update may follow
  pass(1000);
  clock.rests();
  const auto found = clock.taken();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].watched);
  EXPECT_GE(found[0].seconds, 0.02);
  EXPECT_LT(found[0].seconds, 1);
  EXPECT_TRUE(clock.taken().empty());
}

TEST(StepClock, LeavesOutStepsThatDidNotEndOrAreDropped) {
  StepClock clock;
  clock.begins(c10::kCPU, /*watched=*/false);
  clock.begins(c10::kCPU, /*watched=*/false);
  clock.ends();
  clock.drops();
  clock.begins(c10::kCPU, /*watched=*/false);
  clock.ends();
  clock.rests();
  EXPECT_EQ(clock.taken().size(), 1U);
}

}  // namespace
}  // namespace nanquest
