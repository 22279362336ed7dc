#include "probe/step/own_time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

namespace nanquest {
namespace {

constexpr std::int64_t kMeasured = OwnTime::kEvery + OwnTime::kFirst;

void pass(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(OwnTime, IsTheShareOfTheStepInsideOnlyTheOutermostCounts) {
  OwnTime time;
  const auto begin = std::chrono::steady_clock::now();
  {
    const OwnTime::Inside inside(time);
    pass(200);  // before the step
    time.begins(kMeasured);
    pass(40);
    const OwnTime::Inside within(time);
  }
  pass(60);
  std::thread([&] {
    const OwnTime::Inside inside(time);
    pass(20);
  }).join();
  {
    const OwnTime::Inside inside(time);
    pass(20);
    time.ends();
    pass(100);  // after it
  }
  const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_GE(time.share(), 0.08 / all);  // all: more than the step
  EXPECT_LT(time.share(), 1 - 0.06 / all);
  EXPECT_GT(time.share(), 0.2 / 3) << "of the step, not of all";
}

TEST(OwnTime, MeasuresOneStepInSomeAndNoneThatIsDropped) {
  OwnTime time;
  int measured = 0;
  for (std::int64_t step = 0; step < 10 * OwnTime::kEvery; ++step) {
    time.begins(step);
    measured += time.measuring();
    EXPECT_TRUE(step >= OwnTime::kFirst || !time.measuring()) << step;
    time.drops();
    time.ends();
  }
  EXPECT_EQ(measured, 10);
  EXPECT_TRUE(std::isnan(time.share()));
}

}  // namespace
}  // namespace nanquest
