// The line of the whole step above the list of ops, and the graph below it.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;
using testing::trace_of;

class TraceUi : public testing::OpenStory {
 protected:
  std::int32_t culprit() const { return session_->incident()->doc.culprit.op; }
  std::int32_t chosen() const { return session_->selection().op; }
  static void click_map(Driver& driver, double place) {
    const ItemSeen map = driver.items().at("Step map");
    driver.click_at({map.x0 + static_cast<float>(place) * (map.x1 - map.x0), (map.y0 + map.y1) / 2});
  }
};

TEST_F(TraceUi, AClickOnTheMapGoesThere) {
  Driver driver(session(), Panel::trace);
  driver.frame(4);
  ASSERT_TRUE(driver.sees("Step map"));
  const StepMap map = trace_of(driver).map;
  for (const std::int32_t op : {0, 20, culprit(), static_cast<std::int32_t>(map.ops) - 1}) {
    click_map(driver, map.place_of(OpId{op}));
    EXPECT_EQ(chosen(), op);
  }
  const ItemSeen drawn = driver.items().at("Step map");
  click_map(driver, map.place_of(OpId{culprit()}) + 4.0 / (drawn.x1 - drawn.x0));
  EXPECT_EQ(chosen(), culprit()) << "beside a mark: the mark";
}

TEST_F(TraceUi, TheMapShowsWhatTheListShows) {
  Driver driver(session(), Panel::trace, 1280, 480);
  driver.frame(4);
  const auto seen = [&] { return trace_of(driver).seen_ops; };
  for (const std::int32_t op : {0, 30, culprit()}) {
    session().select_op(op);
    driver.frame(4);
    EXPECT_TRUE(std::ranges::count(seen(), OpId{op}) == 1) << op;
    EXPECT_LT(seen().size(), session().incident()->trace.size());
    EXPECT_TRUE(std::ranges::is_sorted(seen()));
    EXPECT_EQ(seen().back().row() - seen().front().row() + 1, static_cast<std::int32_t>(seen().size()));
    for (const OpId id : seen())
      EXPECT_TRUE(driver.sees(std::to_string(id.row()))) << id.row() << ": it is no row that is drawn";
  }
}

TEST_F(TraceUi, TheCulpritAndWhatItMadeAreLoudOnTheMap) {
  Driver driver(session(), Panel::trace);
  trace_of(driver).graph_asked = false;
  session().select_op(0);
  driver.frame(4);
  const ItemSeen map = driver.items().at("Step map");
  EXPECT_GT(driver.area(faint(colour().pink, 0.7f)), 0.2 * 0.4 * (map.x1 - map.x0) * (map.y1 - map.y0) * 0.5);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(TraceUi, TheGraphLeadsToItsOps) {
  Driver driver(session(), Panel::trace, 1280, 900);
  session().select_op(culprit());
  driver.frame(4);
  const OpGraph graph = trace_of(driver).graph;
  ASSERT_GE(graph.nodes.size(), 4u);
  for (const OpGraph::Node& node : graph.nodes) {
    session().select_op(culprit());
    driver.frame(3);
    ASSERT_TRUE(driver.click("graph " + std::to_string(node.op.row()))) << node.op.row();
    EXPECT_EQ(chosen(), node.op.row());
  }
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(TraceUi, TheGraphComesAndGoes) {
  Driver driver(session(), Panel::trace, 1280, 900);
  session().select_op(culprit());
  driver.frame(4);
  const std::string node = "graph " + std::to_string(culprit());
  EXPECT_TRUE(driver.sees(node)) << "there is room";
  driver.press(ImGuiKey_G);
  driver.frame(2);
  EXPECT_FALSE(driver.sees(node));
  ASSERT_TRUE(driver.ui().run_named("Graph of the op, or not"));
  driver.frame(2);
  EXPECT_TRUE(driver.sees(node));
}

TEST_F(TraceUi, WithoutRoomTheGraphComesWhenItIsAskedFor) {
  Driver driver(session(), Panel::trace, 1280, 300);
  session().select_op(culprit());
  driver.frame(4);
  const std::string node = "graph " + std::to_string(culprit());
  EXPECT_FALSE(driver.sees(node)) << "the list needs the room";
  driver.press(ImGuiKey_G);
  driver.frame(2);
  EXPECT_TRUE(driver.sees(node));
}

}  // namespace
}  // namespace nanquest::viewer
