// How often steps are watched for a share of the time.
#include "probe/step/watch_spacing.h"

#include <gtest/gtest.h>

#include <cmath>

#include <cstdint>

namespace nanquest {
namespace {

/// A program of steps of one second, in which a watched one takes `times` as long.
struct Watched {
  WatchSpacing spacing;
  double times;
  std::int64_t step = 0;
  int watched = 0;
  double more = 0, all = 0;

  void run(std::int64_t steps) {
    for (const std::int64_t end = step + steps; step < end; ++step) {
      const bool watches = step < 3 || spacing.due(step);
      const double seconds = watches ? times : 1;
      if (watches || WatchSpacing::measures(step)) spacing.took(seconds, watches);
      if (WatchSpacing::decides(step)) spacing.from(step, WatchSpacing::next(step), spacing.wanted());
      watched += watches;
      more += seconds - 1;
      all += 1;
    }
  }
};

TEST(WatchSpacing, TakesItsShareOfTheTime) {
  for (const double times : {1.1, 1.4, 2.5, 8.0, 20.0})
    for (const int percent : {1, 3}) {
      Watched program{WatchSpacing(percent), times};
      program.run(50'000);
      const double share = (program.more - 3 * (times - 1)) / program.all;
      EXPECT_LE(share, percent / 100.0) << times;
      EXPECT_GE(program.watched, 3 + 50'000 / WatchSpacing::kMost - 1) << times;
      // At most 2.5 times as far apart as what the share pays for, or as often as it may be.
      EXPECT_TRUE(share > percent / 100.0 / 2.6 || program.watched > 50'000 / WatchSpacing::kLeast) << share;
    }
}

TEST(WatchSpacing, HasALeastAndAMost) {
  Watched cheap{WatchSpacing(1), 1.0001}, dear{WatchSpacing(1), 500};
  cheap.run(5001);
  dear.run(10'001);
  EXPECT_EQ(cheap.watched, 3 + 100);
  EXPECT_EQ(dear.watched, 3 + 2);
}

TEST(WatchSpacing, WatchesOneToKnowWhatItCosts) {
  WatchSpacing spacing(1);
  spacing.took(1, /*watched=*/false);
  EXPECT_EQ(spacing.wanted(), WatchSpacing::kLeast);
  spacing.took(8, /*watched=*/true);
  EXPECT_EQ(spacing.wanted(), 1000);
}

TEST(WatchSpacing, TheShareIsWhatWatchedStepsTakeMore) {
  WatchSpacing spacing(1);
  EXPECT_TRUE(std::isnan(spacing.share(0)));
  spacing.took(1, /*watched=*/false);
  spacing.took(8, /*watched=*/true);
  EXPECT_TRUE(std::isnan(spacing.share(0))) << "none is due yet";
  spacing.from(30, 50, 1000);
  EXPECT_TRUE(std::isnan(spacing.share(49)));
  EXPECT_DOUBLE_EQ(spacing.share(50), 7.0 / (1000 + 7));
}

TEST(WatchSpacing, NoneIsDueForNothing) {
  Watched none{WatchSpacing(0), 1.1};
  none.run(1000);
  EXPECT_EQ(none.watched, 3);
}

TEST(WatchSpacing, ASlowFirstStepAndOnePauseDoNotCount) {
  WatchSpacing spacing(1);
  for (const double seconds : {90.0, 8.0, 9.0}) spacing.took(seconds, /*watched=*/true);
  for (int i = 0; i < 9; ++i) spacing.took(i == 4 ? 60 : 1, /*watched=*/false);
  EXPECT_EQ(spacing.wanted(), 1000);
}

TEST(WatchSpacing, ADecisionCountsFromItsStepOn) {
  WatchSpacing spacing(1);
  spacing.from(30, 50, 100);
  EXPECT_FALSE(spacing.due(50));
  EXPECT_TRUE(spacing.due(100));
  spacing.from(180, 250, 50);
  EXPECT_TRUE(spacing.due(200));
  EXPECT_FALSE(spacing.due(150));
  EXPECT_TRUE(spacing.due(250));
}

TEST(WatchSpacing, DoesNotGoToAndFroAtABoundary) {
  WatchSpacing spacing(1);
  spacing.took(1, /*watched=*/false);
  spacing.took(2.01, /*watched=*/true);
  EXPECT_EQ(spacing.wanted(), 200);
  spacing.from(30, 50, 200);
  spacing.took(1.99, /*watched=*/true);
  EXPECT_EQ(spacing.wanted(), 200);
  spacing.took(1.7, /*watched=*/true);
  EXPECT_EQ(spacing.wanted(), 100);
}

}  // namespace
}  // namespace nanquest
