// A step's time on a device is the device's own, and nothing waits for it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "probe/step/step_clock.h"
#include "tests/device/backend/queue.h"
#include "tests/device/backend/state.h"

namespace nqdev {
namespace {

TEST(StepClockOnADevice, TellsWhenTheDeviceHasCome) {
  heal();
  set_seed(5);
  const at::Tensor x = at::ones({8}, at::TensorOptions().device("nqdev"));
  nanquest::StepClock clock;
  reset_counters();
  clock.begins(x.device(), /*watched=*/true);
  x.add_(1);
  clock.ends();
  clock.rests();
  EXPECT_TRUE(clock.taken().empty());  // the device has not begun
  EXPECT_EQ(counted(Counter::synchronisations), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the host's time is no step's
  (void)x.cpu();
  auto found = clock.taken();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_GE(found[0].seconds, 0);
  EXPECT_LT(found[0].seconds, 0.2);
  EXPECT_TRUE(found[0].watched);
}

}  // namespace
}  // namespace nqdev
