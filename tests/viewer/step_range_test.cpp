// The range of steps that plots share.
#include "viewer/model/step_range.h"

#include <gtest/gtest.h>

namespace nanquest::viewer {
namespace {

History steps(double first, double last) {
  SeriesTable table{"scalars", {"step", "loss"}, {}};
  for (double step = first; step <= last; ++step) table.values.insert(table.values.end(), {step, 1.0});
  return History({table});
}

TEST(StepRange, ShowsAllStepsAtFirst) {
  StepRange range;
  range.fit(steps(10, 20));
  EXPECT_LE(range.first, 9.5);
  EXPECT_GE(range.last, 20.5);
  EXPECT_EQ(range.rows(steps(10, 20)), std::pair(std::size_t{0}, std::size_t{11}));
}

TEST(StepRange, GrowsWithTheRunUnlessSomebodyHasZoomed) {
  StepRange range;
  range.fit(steps(0, 100));
  range.fit(steps(0, 150));
  EXPECT_GE(range.last, 150) << "all that there were are shown, so are those that came";
  range.first = 30;
  range.last = 40;
  range.fit(steps(0, 200));
  EXPECT_EQ(range.last, 40);
  const auto [first, last] = range.rows(steps(0, 200));
  EXPECT_LE(first, 30u);
  EXPECT_GE(last, 41u);
  EXPECT_LE(last - first, 14u);
  range.show_all();
  range.fit(steps(0, 200));
  EXPECT_GE(range.last, 200);
  EXPECT_LE(range.first, 0);
}

TEST(StepRange, OfNothingStays) {
  StepRange range;
  range.first = 3;
  range.fit(History());
  EXPECT_EQ(range.first, 3);
  EXPECT_EQ(range.rows(History()), std::pair(std::size_t{0}, std::size_t{0}));
}

}  // namespace
}  // namespace nanquest::viewer
