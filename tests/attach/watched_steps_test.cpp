// Which steps are watched: the first, those after an incident, those of an audit, and as many as a share of
// the time pays for.
#include "probe/attach/watched_steps.h"

#include <gtest/gtest.h>

namespace nanquest::attach {
namespace {

constexpr std::int64_t kNever = -1'000'000;

std::vector<std::int64_t> watched(const WatchedSteps& steps, std::int64_t from, std::int64_t to,
                                  std::int64_t last_incident = kNever) {
  std::vector<std::int64_t> found;
  for (std::int64_t step = from; step < to; ++step)
    if (steps.watches(step, last_incident)) found.push_back(step);
  return found;
}

AttachOptions at_trace() {
  AttachOptions options;
  options.probe.level = Level::trace;
  return options;
}

AttachOptions by_cost(std::int32_t ranks) {
  AttachOptions options = at_trace();
  options.watch_every = -1;
  options.watch_percent = 1;
  options.probe.world_size = ranks;
  return options;
}

/// Lets the steps pass whose time is measured, so that a spacing is known.
void measure(WatchedSteps& steps) {
  for (std::int64_t step = 0; step < WatchSpacing::kLeast; ++step)
    steps.record_begins(step, steps.watches(step, kNever), {});
}

using Numbers = std::vector<std::int64_t>;

TEST(WatchedSteps, AreTheFirstSomeAndThoseAfterAnIncident) {
  AttachOptions options = at_trace();
  options.watch_first = 2;
  options.watch_every = 10;
  options.watch_after = 3;
  const WatchedSteps steps(options);
  EXPECT_EQ(watched(steps, 0, 21), (Numbers{0, 1, 10, 20}));
  EXPECT_EQ(watched(steps, 21, 30, /*last_incident=*/22), (Numbers{21, 22, 23, 24, 25}));
}

TEST(WatchedSteps, AreThoseOfAnAuditAndAllAtLevelWatch) {
  AttachOptions options = at_trace();
  options.audit = 7;
  EXPECT_EQ(watched(WatchedSteps(options), 0, 20), (Numbers{7, 14}));
  options.probe.level = Level::watch;
  EXPECT_EQ(watched(WatchedSteps(options), 0, 3), (Numbers{0, 1, 2}));
}

TEST(WatchedSteps, AloneAProcessDecidesItself) {
  const AttachOptions options = by_cost(/*ranks=*/1);
  WatchedSteps steps(options);
  EXPECT_EQ(watched(steps, 0, 200), Numbers());
  measure(steps);
  EXPECT_EQ(watched(steps, 50, 151), (Numbers{50, 100, 150}));
  EXPECT_EQ(steps.wanted(), 0) << "there is nothing to agree on";
}

TEST(WatchedSteps, RanksWaitForWhatOneOfThemSays) {
  const AttachOptions options = by_cost(/*ranks=*/2);
  WatchedSteps steps(options);
  measure(steps);
  EXPECT_EQ(watched(steps, 50, 151), Numbers());
  EXPECT_EQ(steps.wanted(), WatchSpacing::kLeast);
  steps.from(/*now=*/50, /*first=*/60, /*every=*/1'000'000'000'000);
  EXPECT_EQ(watched(steps, 60, 2 * WatchSpacing::kMost), (Numbers{WatchSpacing::kMost}));
}

TEST(WatchedSteps, AnIncidentsFileIsNoCostOfAStep) {
  const AttachOptions options = at_trace();
  WatchedSteps steps(options);
  steps.step_begins(OwnTime::kFirst);
  EXPECT_TRUE(steps.inside());
  EXPECT_TRUE(steps.update_made(OwnTime::kFirst, /*reported=*/false));
  steps.step_begins(OwnTime::kFirst + OwnTime::kEvery);
  EXPECT_FALSE(steps.update_made(OwnTime::kFirst + OwnTime::kEvery, /*reported=*/true));
  EXPECT_FALSE(steps.inside());
}

}  // namespace
}  // namespace nanquest::attach
