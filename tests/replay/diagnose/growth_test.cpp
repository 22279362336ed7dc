#include "replay/cause/growth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "replay/counterfactual/ddmin.h"

namespace nanquest {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> doubling_every(double steps, int n) {
  std::vector<double> v;
  for (int i = 0; i < n; ++i) v.push_back(3 * std::exp2(i / steps));
  return v;
}

TEST(Growth, SlopeOfAnExponentialIsExact) {
  double rising = 0;
  EXPECT_NEAR(log2_slope(doubling_every(4, 32), &rising), 0.25, 1e-12);
  EXPECT_EQ(rising, 1.0);
}

TEST(Growth, NonFiniteZeroAndOutliersChangeNothing) {
  std::vector<double> v = doubling_every(4, 40);
  v[5] = kNaN, v[9] = kInf, v[12] = 0, v[20] = -1, v[30] = 1e30;
  EXPECT_NEAR(log2_slope(v), 0.25, 0.01);
}

TEST(Growth, TooFewPointsSayNothing) {
  double rising = 1;
  EXPECT_EQ(log2_slope({1, 2, 4, 8, 16, 32, 64}, &rising), 0);
  EXPECT_EQ(rising, 0);
}

SnapshotDoc with_column(const std::string& table, const std::string& column,
                        const std::vector<double>& values) {
  SnapshotDoc doc;
  doc.history = {{table, {column}, values}};
  return doc;
}

TEST(Growth, FlatNoisyAndFallingSeriesAreSilent) {
  std::vector<double> noisy, falling;
  unsigned state = 1;
  for (int i = 0; i < 64; ++i) {
    state = state * 1664525u + 1013904223u;
    noisy.push_back(1 + (state >> 16) / 65536.0);
    falling.push_back(std::exp2(-i * 0.1));
  }
  EXPECT_TRUE(find_growth(with_column("grad_norm", "fc", noisy)).empty());
  EXPECT_TRUE(find_growth(with_column("scalars", "loss", falling)).empty());
  EXPECT_TRUE(find_growth(with_column("scalars", "loss", std::vector<double>(64, 2.5))).empty());
}

TEST(Growth, LearningRateAndStepMayGrow) {
  EXPECT_TRUE(find_growth(with_column("scalars", "lr", doubling_every(4, 32))).empty());
  EXPECT_TRUE(find_growth(with_column("scalars", "step", doubling_every(4, 32))).empty());
}

TEST(Growth, ALateSurgeIsSeenInTheShortWindow) {
  std::vector<double> v(200, 1.0);
  for (int i = 0; i < 16; ++i) v.push_back(std::exp2(i * 0.5));
  v.push_back(kNaN);  // the incident itself
  const auto found = find_growth(with_column("amax", "blocks.1.mlp", v));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "amax of blocks.1.mlp");
  EXPECT_NEAR(found[0].bits_per_step, 0.5, 0.01);
  EXPECT_TRUE(std::isnan(found[0].series.back()));
}

TEST(Growth, StrongestFirst) {
  SnapshotDoc doc;
  doc.history = {{"grad_norm", {"slow", "fast"}, {}}};
  for (int i = 0; i < 32; ++i) {
    doc.history[0].values.push_back(std::exp2(i * 0.1));
    doc.history[0].values.push_back(std::exp2(i * 0.4));
  }
  const auto found = find_growth(doc);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].what, "grad_norm of fast");
}

TEST(Ddmin, FindsEverySubsetOfEightExactly) {
  for (unsigned wanted = 1; wanted < 256; ++wanted) {
    const auto holds = [&](const std::vector<int>& s) {
      unsigned have = 0;
      for (int i : s) have |= 1u << i;
      return (have & wanted) == wanted;
    };
    unsigned found = 0;
    for (int i : ddmin<int>({0, 1, 2, 3, 4, 5, 6, 7}, holds, 1000)) found |= 1u << i;
    EXPECT_EQ(found, wanted);
  }
}

TEST(Ddmin, StopsAtItsBudgetWithASetThatStillPasses) {
  std::vector<int> all(64);
  for (int i = 0; i < 64; ++i) all[static_cast<std::size_t>(i)] = i;
  int calls = 0;
  const auto test = [](const std::vector<int>& s) {
    return std::count(s.begin(), s.end(), 3) + std::count(s.begin(), s.end(), 60) == 2;
  };
  const auto left = ddmin<int>(all, test, 7, &calls);
  EXPECT_LE(calls, 7);
  EXPECT_TRUE(test(left));
}

}  // namespace
}  // namespace nanquest
