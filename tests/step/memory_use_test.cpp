#include "probe/step/memory_use.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "probe/step/history.h"

namespace nanquest {
namespace {

/// The same figure from another file of the system, in another unit.
double resident_by_status() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmRSS:")) return 1024 * std::strtod(line.c_str() + 6, nullptr);
  return std::nan("");
}

TEST(MemoryUse, IsWhatTheSystemSays) {
  const double before = resident_bytes();
  const std::vector<char> more(64 << 20, 1);
  const double with = resident_bytes();
  EXPECT_NEAR(with, resident_by_status(), 4e6);
  EXPECT_NEAR(with - before, static_cast<double>(more.size()), 4e6);
}

TEST(MemoryUse, WithoutADeviceThereIsNoPeak) {
  EXPECT_TRUE(std::isnan(device_peak_bytes({})));
}

TEST(MemoryUse, ARowRepeatsWhatWasReadLast) {
  History history(4, {"a"}, {});
  history.begin_row();
  EXPECT_TRUE(std::isnan(history.get(Scalar::resident))) << "not read yet";
  history.set(Scalar::resident, 5);
  history.begin_row();
  EXPECT_EQ(history.get(Scalar::resident), 5);
  EXPECT_EQ(history.get(Scalar::measured), 0);
  EXPECT_TRUE(std::isnan(history.get(Scalar::device_peak)));
}

}  // namespace
}  // namespace nanquest
