// Values that a logarithmic axis names.
#include "viewer/model/ticks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace nanquest::viewer {
namespace {

using Values = std::vector<double>;

TEST(Ticks, AreRoundValues) {
  EXPECT_EQ(log_ticks(5461, 98304, 6), (Values{1e4, 2e4, 5e4}));
  EXPECT_EQ(log_ticks(0.0008, 0.02, 6), (Values{0.001, 0.002, 0.005, 0.01, 0.02}));
  EXPECT_EQ(log_ticks(21845, 49152, 6), (Values{25e3, 3e4, 35e3, 4e4, 45e3})) << "of a constant loss scale";
  EXPECT_EQ(log_ticks(0.6667, 1.5, 6), (Values{0.8, 1, 1.2, 1.4}));
  EXPECT_EQ(log_ticks(1, 90, 3), (Values{1, 5, 20})) << "thinned out";
  EXPECT_EQ(linear_ticks(0, 120, 3), (Values{0, 50, 100}));
  EXPECT_EQ(linear_ticks(-0.33, 8, 2), (Values{0, 5}));
  EXPECT_FALSE(std::signbit(linear_ticks(-0.33, 8, 2).front()));
  EXPECT_EQ(linear_ticks(3.05, 3.45, 2), (Values{3.2, 3.4}));
  EXPECT_TRUE(linear_ticks(1, 1, 3).empty());
  EXPECT_TRUE(log_ticks(1, 100, 6).empty()) << "the plot's own decades";
  for (const auto& [low, high] : {std::pair{0.0, 1.0}, {-1.0, 2.0}, {2.0, 2.0}, {1.0, HUGE_VAL}, {NAN, 1.0}})
    EXPECT_TRUE(log_ticks(low, high, 6).empty()) << low << " to " << high;
}

/// Whatever is in view, two or more of them are, in their order.
TEST(Ticks, LieInView) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> place(-12, 12), spread(0.01, 2);
  for (int i = 0; i < 2000; ++i) {
    const double low = std::pow(10, place(random)), high = low * std::pow(10, spread(random) * 0.999);
    for (const std::size_t most : {2U, 3U, 6U}) {
      const Values ticks = log_ticks(low, high, most);
      ASSERT_GE(ticks.size(), 1U) << low << " to " << high;
      ASSERT_LE(ticks.size(), most) << low << " to " << high;
      for (std::size_t t = 0; t < ticks.size(); ++t) {
        EXPECT_GE(ticks[t], low * (1 - 1e-9));
        EXPECT_LE(ticks[t], high * (1 + 1e-9));
        EXPECT_TRUE(t == 0 || ticks[t] > ticks[t - 1]) << low << " to " << high;
      }
    }
  }
}

}  // namespace
}  // namespace nanquest::viewer
