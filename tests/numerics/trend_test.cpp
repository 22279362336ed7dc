#include "probe/numerics/trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace nanquest {
namespace {

TEST(Trend, is_the_line_of_the_text_books) {
  // By hand: mean x 2, mean y 3; Sxx 10, Sxy 6, Syy 6; slope .6, residual 6 - 3.6 = 2.4, error sqrt(2.4 / 3 / 10).
  const std::vector<double> x{0, 1, 2, 3, 4}, y{1, 3, 4, 3, 4};
  const auto trend = trend_of(x, y);
  ASSERT_TRUE(trend);
  EXPECT_NEAR(trend->slope, 0.6, 1e-12);
  EXPECT_NEAR(trend->value, 3 + 0.6 * 2, 1e-12);
  EXPECT_NEAR(trend->error, std::sqrt(2.4 / 3 / 10), 1e-12);
}

TEST(Trend, needs_three_points_and_two_places) {
  EXPECT_FALSE(trend_of(std::vector<double>{0, 1}, std::vector<double>{0, 1}));
  EXPECT_FALSE(trend_of(std::vector<double>{2, 2, 2}, std::vector<double>{0, 1, 2}));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(trend_of(std::vector<double>{0, 1, 2}, std::vector<double>{0, inf, 2}));
}

TEST(Reach, lies_between_the_steeper_and_the_flatter_line) {
  const auto reach = reaches_zero({.value = 6, .slope = -0.5, .error = 0.05});
  ASSERT_TRUE(reach);
  EXPECT_DOUBLE_EQ(reach->steps, 12);
  EXPECT_DOUBLE_EQ(reach->earliest, 10);
  EXPECT_DOUBLE_EQ(reach->latest, 15);
}

TEST(Reach, may_be_never) {
  EXPECT_FALSE(reaches_zero({.value = 6, .slope = 0.1, .error = 0}));
  EXPECT_TRUE(std::isinf(reaches_zero({.value = 6, .slope = -0.1, .error = 0.05})->latest));
  EXPECT_EQ(reaches_zero({.value = -1, .slope = 0.1, .error = 0})->steps, 0);
}

}  // namespace
}  // namespace nanquest
