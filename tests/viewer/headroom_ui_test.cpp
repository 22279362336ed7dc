// Headroom and forecasts as the timeline draws them.
#include <gtest/gtest.h>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "tests/viewer/watched.h"
#include "viewer/panels/timeline/view.h"
#include "viewer/ui/marks.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class HeadroomUi : public testing::Story {
 protected:
  void SetUp() override { testing::write_run(dir()); }
  static TimelinePanel& timeline_of(Driver& driver) {
    return static_cast<TimelinePanel&>(driver.ui().view(Panel::timeline));
  }
};

TEST_F(HeadroomUi, AForecastHasAMarkAndTheCurveFollowsThePlace) {
  testing::watch(dir());
  Session session = open(dir());
  Driver driver(session, Panel::timeline, 1280, 900);
  driver.frame(4);
  const int with = driver.coloured(mark_colour(Mark::forecast));  // a curve has that colour too
  timeline_of(driver).events.clear();
  driver.frame(2);
  EXPECT_GE(with - driver.coloured(mark_colour(Mark::forecast)), 3 + 4 + 2) << "arrow, bar, the line between";
  EXPECT_EQ(timeline_of(driver).curves.back().title, "Least headroom, bits");
  for (const char* name : {"Headroom of the nearest place", "Least headroom of all places"}) {
    bool found = false;
    for (const Action& action : driver.ui().actions())
      if (action.name == name) found = true, action.run();
    EXPECT_TRUE(found) << name;
    driver.frame(3);
    EXPECT_EQ(session.selection().place, timeline_of(driver).place_of);
    EXPECT_EQ(session.selection().place.empty(), std::string(name).starts_with("Least"));
  }
  EXPECT_EQ(driver.bad_vertices(), 0) << "a place that held nothing but zeros, or did not run, is a gap";
}

TEST_F(HeadroomUi, WithoutThemNothingOfItIsDrawn) {
  Session session = open(dir());
  Driver driver(session, Panel::timeline, 1280, 900);
  driver.frame(4);
  EXPECT_EQ(timeline_of(driver).curves.size(), timeline_curves(session.history()).size());
  for (const Action& action : driver.ui().actions()) EXPECT_NE(action.menu, "Headroom") << action.name;
}

}  // namespace
}  // namespace nanquest::viewer
