// The timeline under a person's hands.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/viewer/plots.h"
#include "tests/viewer/story.h"
#include "viewer/panels/timeline/view.h"
#include "viewer/ui/marks.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;
using testing::plot_of;

class TimelineUi : public testing::OpenStory {
 protected:
  /// Pixels of a place in a plot of the timeline.
  static ImVec2 place(const char* plot, double step, double y) {
    return testing::place_in("Timeline", plot, step, y);
  }
};

TEST_F(TimelineUi, AMarkOfAnIncidentOpensIt) {
  Driver driver(session(), Panel::timeline);
  driver.frame(5);
  ASSERT_EQ(session().incident()->doc.step, 131);
  const ImVec2 mark = place("##lanes", 90, 0.5);
  ASSERT_GT(mark.x, 0);
  driver.click_at({mark.x + 3, mark.y});
  EXPECT_EQ(session().incident()->doc.step, 90);
}

TEST_F(TimelineUi, AClickOnACurveSelectsItsStep) {
  Driver driver(session(), Panel::timeline);
  driver.frame(5);
  const ImVec2 at = place("##loss", 40, 5);
  ASSERT_GT(at.x, 0);
  driver.click_at(at);
  EXPECT_EQ(session().selection().step, 40);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(TimelineUi, ADragMeasuresACurveAndMovesNothing) {
  Driver driver(session(), Panel::timeline);
  driver.frame(5);
  const auto measured = [&] {
    return static_cast<TimelinePanel&>(driver.ui().view(Panel::timeline)).measure;
  };
  const double first = driver.ui().state().steps.first;
  const ImVec2 from = place("##loss", 20, 5), to = place("##loss", 60, 5);
  const auto drag = [&] { testing::drag(driver, from, to); };
  drag();
  ASSERT_TRUE(measured());
  EXPECT_EQ(measured()->curve, "loss");
  EXPECT_EQ(std::round(measured()->from), 20);
  EXPECT_EQ(std::round(measured()->to), 60);
  EXPECT_EQ(driver.ui().state().steps.first, first);
  EXPECT_EQ(session().selection().step, 131) << "a drag selects no step";
  driver.click_at(from);
  EXPECT_FALSE(measured()) << "a click ends it";
  drag();
  ASSERT_TRUE(measured());
  driver.press(ImGuiKey_Escape);
  EXPECT_FALSE(measured()) << "and so does Esc";
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, true);
  drag();
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, false);
  driver.frame(2);
  EXPECT_FALSE(measured());
  EXPECT_LT(driver.ui().state().steps.first, first - 10) << "with Shift it pans";
  driver.press(ImGuiKey_Home);
  EXPECT_NEAR(driver.ui().state().steps.first, first, 1e-9);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(TimelineUi, TheWheelZoomsTheStepsOfAllPlots) {
  Driver driver(session(), Panel::all, 1600, 1000);
  driver.frame(5);
  const double before = driver.ui().state().steps.last;
  const ImVec2 at = place("##loss", 60, 5);
  ASSERT_GT(at.x, 0);
  driver.wheel(at.x, at.y, 3);
  const StepRange& steps = driver.ui().state().steps;
  EXPECT_LT(steps.last, before);
  const ImPlotPlot* map = plot_of("Norms", "Layers by step");
  ASSERT_NE(map, nullptr);
  EXPECT_NEAR(map->Axes[ImAxis_X1].Range.Max, steps.last, 1e-9) << "the heat map shows the same steps";
  driver.press(ImGuiKey_Home);
  EXPECT_GE(steps.last, 131);
}

TEST_F(TimelineUi, TheWheelWithCtrlZoomsTheValuesOfOneCurve) {
  Driver driver(session(), Panel::timeline);
  driver.frame(5);
  const auto shown = [&](const char* plot) {
    return place(plot, 60, 5).y - place(plot, 60, 3).y;  // pixels from 5 to 3
  };
  const float loss = shown("##loss"), rate = shown("##lr");
  const double steps = driver.ui().state().steps.last;
  const ImVec2 at = place("##loss", 60, 5);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, true);
  driver.wheel(at.x, at.y, 2);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, false);
  driver.frame(2);
  EXPECT_GT(std::abs(shown("##loss")), std::abs(loss) * 1.05f);
  EXPECT_EQ(shown("##lr"), rate);
  EXPECT_EQ(driver.ui().state().steps.last, steps);
}

/// Without a series each incident has its own history: a click must not replace what is being drawn.
TEST_F(TimelineUi, AnotherIncidentBringsItsOwnHistory) {
  const std::string run = temp_.path() + "/bare";
  testing::write_run(run, {.series = false, .incidents = 2});
  Session bare = open(run);
  for (const Panel panel : {Panel::timeline, Panel::all}) {
    bare.select_step(131);
    Driver driver(bare, panel, 1600, 1000);
    driver.frame(5);
    const ImVec2 mark = place("##lanes", 90, 0.5);
    ASSERT_GT(mark.x, 0);
    driver.click_at(mark);
    EXPECT_EQ(bare.incident()->doc.step, 90);
    EXPECT_EQ(driver.bad_vertices(), 0);
  }
  Driver driver(bare, Panel::verdict);
  driver.frame(5);
  bare.select_step(131);
  driver.frame(2);
  ASSERT_TRUE(driver.click("step 131"));
}

TEST_F(TimelineUi, IncidentsWithoutAnyHistoryAreInThePlot) {
  const std::string run = temp_.path() + "/named";
  testing::write_run(run, {.series = false, .incidents = 2});
  std::filesystem::remove_all(run + "/incidents");
  Session named = open(run);
  ASSERT_TRUE(named.history().empty());
  Driver driver(named, Panel::timeline);
  driver.frame(5);
  const ImPlotPlot* lanes = plot_of("Timeline", "##lanes");
  ASSERT_NE(lanes, nullptr);
  for (const double step : {90.0, 131.0}) EXPECT_TRUE(lanes->Axes[ImAxis_X1].Range.Contains(step)) << step;
  const ImVec2 mark = place("##lanes", 90, 0.5);
  driver.click_at(mark);
  EXPECT_EQ(named.selection().step, 90);
}

TEST_F(TimelineUi, ARunOfNothingButNaNIsDrawn) {
  std::vector<SeriesTable> tables = {{"scalars", {"step", "loss", "grad_norm", "scale"}, {}}};
  for (int i = 0; i < 20; ++i)
    tables[0].values.insert(tables[0].values.end(), {i * 1.0, std::nan(""), std::nan(""), 1024});
  testing::write_series(dir(), tables);
  ASSERT_TRUE(session().reload());
  Driver driver(session(), Panel::timeline);
  driver.frame(5);
  EXPECT_EQ(driver.bad_vertices(), 0);
  EXPECT_GT(driver.coloured(mark_colour(Mark::nan)), 40);
}

}  // namespace
}  // namespace nanquest::viewer
