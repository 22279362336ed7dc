// Runs chosen in the list of a folder, shown together; smoothed curves.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "tests/viewer/plots.h"
#include "tests/viewer/story.h"
#include "viewer/model/smoothing.h"
#include "viewer/ui/run_lines.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class OverlayUi : public testing::Story {
 protected:
  void SetUp() override {
    for (const char* run : {"run-1", "run-2", "run-3"}) testing::write_run(folder() + "/" + run);
    std::vector<SeriesTable> tables = testing::fixture_history(150);
    for (std::size_t step = 41; step < 150; ++step) testing::column_of(tables, "scalars", "loss")[step] += 2;
    testing::write_series(folder() + "/run-3", tables);
  }
  std::string folder() const { return temp_.path() + "/night"; }
};

TEST_F(OverlayUi, BoxesChooseRunsThatAreShownTogether) {
  Session session = open(folder());
  Driver driver(session, Panel::all, 1600, 1000);
  driver.frame(5);
  EXPECT_FALSE(driver.sees("Show together"));
  for (const char* box : {"##run-3", "##run-1", "##run-2", "##run-2"}) {
    ASSERT_TRUE(driver.click(box)) << box;
    ASSERT_NE(session.folder(), nullptr) << "a box opens nothing";
  }
  EXPECT_EQ(driver.ui().folder().chosen(),
            (std::vector<std::string>{folder() + "/run-3", folder() + "/run-1"}));
  ASSERT_TRUE(driver.click("Show together"));
  driver.frame(5);
  ASSERT_EQ(session.path(), folder() + "/run-3") << driver.ui().state().message;
  ASSERT_EQ(session.others().size(), 1U);
  EXPECT_EQ(session.others()[0]->path(), folder() + "/run-1");
  EXPECT_TRUE(driver.sees("run run-3") && driver.sees("run run-1")) << "the legend names them";
  for (const std::size_t run : {0U, 1U})
    EXPECT_GT(driver.coloured(ImGui::GetColorU32(style_of_run(run).ink)), 200) << run;
  driver.press(ImGuiKey_UpArrow, ImGuiMod_Alt);
  driver.frame(3);
  EXPECT_EQ(driver.ui().folder().chosen().size(), 2U) << "they are still chosen";
  ASSERT_TRUE(driver.click("Choose none"));
  EXPECT_TRUE(driver.ui().folder().chosen().empty());
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(OverlayUi, CurvesAreSmoothedAsMuchAsIsAsked) {
  Session session = open(folder() + "/run-1");
  Driver driver(session, Panel::timeline);
  driver.frame(5);
  EXPECT_FALSE(driver.sees("##smoothing"));
  EXPECT_FALSE(driver.ui().run_named("Do not smooth curves"));
  EXPECT_FALSE(driver.ui().run_named("Smooth curves less"));
  ASSERT_TRUE(driver.ui().run_named("Smooth curves more"));
  driver.frame(3);
  ASSERT_TRUE(driver.ui().run_named("Smooth curves more"));
  EXPECT_EQ(session.selection().smoothing, 0.8);
  driver.frame(2);
  ASSERT_TRUE(driver.sees("##smoothing"));
  ASSERT_TRUE(driver.click("##smoothing"));  // its middle
  EXPECT_NEAR(session.selection().smoothing, kMostSmoothing / 2, 0.01);
  EXPECT_FALSE(driver.ui().run_named("Back")) << "it is no place to go back to";
  ASSERT_TRUE(driver.ui().run_named("Do not smooth curves"));
  driver.frame(3);
  EXPECT_EQ(session.selection().smoothing, 0);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

/// The chosen layer of every run in the lines of the norms.
TEST_F(OverlayUi, LinesOfLayersShowTheChosenOneOfAllRuns) {
  Session session = open(folder() + "/run-1");
  ASSERT_TRUE(session.compare_with({folder() + "/run-2", folder() + "/run-3"}));
  Driver driver(session, Panel::norms);
  testing::norms_of(driver).plots = NormsPanel::lines;
  session.select_layer("");
  driver.frame(5);
  const auto drawn = [&] { return driver.coloured(ImGui::GetColorU32(style_of_run(2).ink)); };
  const int before = drawn();
  session.select_layer("head");
  session.select_smoothing(0.9);
  driver.frame(3);
  EXPECT_GT(drawn(), before + 200);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST(RunLines, AreToldApartWithAndWithoutColour) {
  std::set<std::pair<std::string, const float*>> looks;
  std::set<std::string> letters;
  for (std::size_t run = 0; run < kMostRuns; ++run) {
    const LineStyle style = style_of_run(run);
    looks.emplace(std::to_string(ImGui::ColorConvertFloat4ToU32(style.ink)), style.dashes.data());
    letters.insert(letter_of_run(run));
  }
  EXPECT_EQ(looks.size(), kMostRuns);
  EXPECT_EQ(letters.size(), kMostRuns);
}

}  // namespace
}  // namespace nanquest::viewer
