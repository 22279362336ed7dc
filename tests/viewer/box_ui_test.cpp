// A box drawn with the right button: plots show what lies in it. And what fitted values leave free.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/viewer/plots.h"
#include "tests/viewer/story.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;
using testing::norms_of;
using testing::place_in;
using testing::plot_of;

class BoxZoom : public testing::OpenStory {
 protected:
  static ImPlotRange range(const char* panel, const char* plot, ImAxis axis) {
    return plot_of(panel, plot)->Axes[axis].Range;
  }
  static void draw_box(Driver& driver, ImVec2 from, ImVec2 to) {
    testing::drag(driver, from, to, ImGuiMouseButton_Right);
  }
  static void double_click(Driver& driver, ImVec2 at) {
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(at.x, at.y);
    driver.frame(2);
    for (const bool down : {true, false, true, false}) {
      io.AddMouseButtonEvent(0, down);
      driver.frame();
    }
    driver.frame(2);
  }
};

TEST_F(BoxZoom, OnACurveShowsItsStepsAndValues) {
  Driver driver(session(), Panel::timeline);
  driver.frame(5);
  const StepRange& steps = driver.ui().state().steps;
  const ImPlotRange loss = range("Timeline", "##loss", ImAxis_Y1),
                    rate = range("Timeline", "##lr", ImAxis_Y1);
  const double first = steps.first;
  draw_box(driver, place_in("Timeline", "##loss", 20, 6), place_in("Timeline", "##loss", 60, 4));
  EXPECT_NEAR(steps.first, 20, 0.5);
  EXPECT_NEAR(steps.last, 60, 0.5);
  EXPECT_NEAR(range("Timeline", "##loss", ImAxis_Y1).Min, 4, 0.1);
  EXPECT_NEAR(range("Timeline", "##loss", ImAxis_Y1).Max, 6, 0.1);
  EXPECT_EQ(range("Timeline", "##lr", ImAxis_Y1).Max, rate.Max) << "values of another curve stay";
  EXPECT_EQ(session().selection().step, 131) << "no step was chosen by it";
  double_click(driver, place_in("Timeline", "##loss", 40, 5));
  EXPECT_NEAR(steps.first, first, 1e-9);
  EXPECT_NEAR(range("Timeline", "##loss", ImAxis_Y1).Max, loss.Max, 1e-9);
  EXPECT_NEAR(range("Timeline", "##loss", ImAxis_Y1).Min, loss.Min, 1e-9);
}

TEST_F(BoxZoom, AlongOneAxisChangesThatAlone) {
  Driver driver(session(), Panel::timeline);
  driver.frame(5);
  const StepRange& steps = driver.ui().state().steps;
  const ImPlotRange values = range("Timeline", "##loss", ImAxis_Y1);
  ImVec2 from = place_in("Timeline", "##loss", 20, 5);
  draw_box(driver, from, {place_in("Timeline", "##loss", 60, 5).x, from.y + 6});
  EXPECT_NEAR(steps.last, 60, 0.5);
  EXPECT_EQ(range("Timeline", "##loss", ImAxis_Y1).Min, values.Min);
  EXPECT_EQ(range("Timeline", "##loss", ImAxis_Y1).Max, values.Max);
  const double first = steps.first, last = steps.last;
  from = place_in("Timeline", "##loss", 40, 6);
  draw_box(driver, from, {from.x + 6, place_in("Timeline", "##loss", 40, 4).y});
  EXPECT_EQ(steps.first, first);
  EXPECT_EQ(steps.last, last);
  EXPECT_NEAR(range("Timeline", "##loss", ImAxis_Y1).Max, 6, 0.1);
}

TEST_F(BoxZoom, OnTheMapShowsItsStepsAndLayers) {
  Driver driver(session(), Panel::norms);
  norms_of(driver).plots = NormsPanel::heat_map;
  driver.frame(5);
  const StepRange& steps = driver.ui().state().steps;
  const double rows = norms_of(driver).layer_range.to();
  draw_box(driver, place_in("Norms", "Layers by step", 20, 3), place_in("Norms", "Layers by step", 60, 9));
  EXPECT_NEAR(steps.first, 20, 0.5);
  EXPECT_NEAR(steps.last, 60, 0.5);
  EXPECT_NEAR(norms_of(driver).layer_range.from(), 3, 0.1);
  EXPECT_NEAR(norms_of(driver).layer_range.to(), 9, 0.1);
  double_click(driver, place_in("Norms", "Layers by step", 40, 5));
  EXPECT_TRUE(steps.shows_all());
  EXPECT_EQ(norms_of(driver).layer_range.from(), 0);
  EXPECT_EQ(norms_of(driver).layer_range.to(), rows);
}

TEST_F(BoxZoom, OnTheLinesOfLayersShowsItsStepsAndValues) {
  Driver driver(session(), Panel::norms);
  norms_of(driver).plots = NormsPanel::lines;
  driver.frame(5);
  draw_box(driver, place_in("Norms", "##linesgrad_norm", 100, 4),
           place_in("Norms", "##linesgrad_norm", 125, 0.2));
  EXPECT_NEAR(driver.ui().state().steps.first, 100, 0.5);
  const ImPlotRange values = range("Norms", "##linesgrad_norm", ImAxis_Y1);
  EXPECT_NEAR(std::log(values.Min / 0.2), 0, 0.05);
  EXPECT_NEAR(std::log(values.Max / 4), 0, 0.05);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

/// The title of a curve and its marks cover none of its values.
TEST_F(BoxZoom, FittedValuesEndBelowTheTitle) {
  for (const float height : {800.0f, 480.0f}) {
    Driver driver(session(), Panel::timeline, 1280, height);
    driver.frame(5);
    for (const auto& [plot, most] : {std::pair{"##loss", 7.6}, std::pair{"##lr", 0.006}}) {
      const float below = place_in("Timeline", plot, 0, most).y - plot_of("Timeline", plot)->PlotRect.Min.y;
      EXPECT_GE(below, ImGui::GetTextLineHeight()) << plot << " at " << height;
    }
  }
}

}  // namespace
}  // namespace nanquest::viewer
