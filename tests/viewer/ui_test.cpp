// The panels on no backend: what is drawn, what clicks and keys do, and that no NaN reaches a vertex.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/viewer/damage.h"
#include "tests/viewer/driver.h"
#include "tests/viewer/fixture.h"
#include "viewer/model/verdict_page.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;
using testing::TempDir;

class Ui : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::FixtureOptions options;
    options.incidents = 2;
    snapshot_ = testing::write_run(dir(), options);
    Result<Session> opened = Session::open(dir());
    ASSERT_TRUE(opened) << opened.error().text();
    session_.emplace(std::move(opened).value());
    misuse_before_ = misuse_count();
  }
  void TearDown() override { EXPECT_EQ(misuse_count(), misuse_before_) << first_misuse(); }
  std::string dir() const { return temp_.path() + "/story"; }
  Session& session() { return *session_; }
  TempDir temp_;
  std::string snapshot_;
  std::optional<Session> session_;
  int misuse_before_ = 0;
};

TEST_F(Ui, EveryPanelDrawsOnlyFiniteVertices) {
  for (const Panel panel :
       {Panel::all, Panel::verdict, Panel::norms, Panel::trace, Panel::tensor, Panel::runs})
    for (const float width : {1280.0f, 400.0f}) {
      Driver driver(session(), panel, width, 600);
      driver.frame(5);
      EXPECT_GT(driver.vertices(), 300) << panel_name(panel);
      EXPECT_EQ(driver.bad_vertices(), 0) << panel_name(panel);
    }
}

TEST_F(Ui, EveryStatisticAndTensorDrawsOnlyFiniteVertices) {
  Driver norms(session(), Panel::norms);
  for (int s = 0; s < kStatistics; ++s) {
    session().select_statistic(static_cast<Statistic>(s));
    norms.frame(3);
  }
  EXPECT_EQ(norms.bad_vertices(), 0);
  const std::vector<StoredTensor> tensors = session().incident()->tensors;
  for (const StoredTensor& tensor : tensors) {
    session().select_tensor(tensor.path);
    norms.frame(1);
  }
  EXPECT_EQ(norms.bad_vertices(), 0);
}

TEST_F(Ui, NonFiniteValuesAreLoud) {
  Driver driver(session(), Panel::norms);
  driver.frame(4);
  EXPECT_GT(driver.coloured(mark_colour(Mark::nan)), 40);      // a whole column of cells, and the lane
  EXPECT_GT(driver.coloured(mark_colour(Mark::pos_inf)), 20);  // step 90
  session().select_statistic(Statistic::weight);               // holds nothing but finite numbers
  driver.frame(4);
  EXPECT_LT(driver.coloured(mark_colour(Mark::pos_inf)), 20);
}

TEST_F(Ui, ClickingAStatisticShowsIt) {
  Driver driver(session(), Panel::norms);
  driver.frame(4);
  ASSERT_TRUE(driver.click("Weight norm"));
  EXPECT_EQ(session().selection().statistic, Statistic::weight);
  EXPECT_FALSE(driver.click("No such button"));
  ASSERT_TRUE(driver.click("Heat map"));
  EXPECT_EQ(driver.ui().state().norms_view, 1);
}

TEST_F(Ui, ClickingAnOpSelectsItEverywhere) {
  Driver driver(session(), Panel::trace);
  driver.frame(4);
  const std::int32_t culprit = session().selection().op;
  const std::string before = std::to_string(culprit - 2);
  ASSERT_TRUE(driver.click(before));
  EXPECT_EQ(session().selection().op, culprit - 2);
  EXPECT_EQ(session().selection().layer, "blocks.3.mlp.up");
  EXPECT_EQ(session().selection().tensor, "parameters/blocks.3.mlp.up.weight");
}

TEST_F(Ui, BracketsWalkAlongTheData) {
  Driver driver(session(), Panel::trace);
  driver.frame(4);
  const std::int32_t culprit = session().selection().op;
  driver.press(ImGuiKey_LeftBracket);
  EXPECT_EQ(session().selection().op, culprit - 1);
  driver.press(ImGuiKey_RightBracket);
  EXPECT_EQ(session().selection().op, culprit);
  driver.press(ImGuiKey_LeftBracket);
  driver.press(ImGuiKey_LeftBracket);
  driver.press(ImGuiKey_C);
  EXPECT_EQ(session().selection().op, culprit);
}

TEST_F(Ui, ArrowsMoveThroughTheFilteredTrace) {
  Driver driver(session(), Panel::trace);
  driver.frame(4);
  const std::int32_t culprit = session().selection().op;
  driver.click(std::to_string(culprit));
  driver.press(ImGuiKey_UpArrow);
  EXPECT_EQ(session().selection().op, culprit - 1);
  driver.press(ImGuiKey_DownArrow);
  EXPECT_EQ(session().selection().op, culprit);
}

TEST_F(Ui, ControlFFilters) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  driver.press(ImGuiKey_F, ImGuiMod_Ctrl);
  driver.frame(3);
  driver.type("softmax");
  EXPECT_STREQ(driver.ui().state().filter, "softmax");
  EXPECT_EQ(driver.ui().state().visible_ops.size(), session().incident()->trace.filter("softmax").size());
}

TEST_F(Ui, ControlRReloadsAndKeepsTheSelection) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  session().select_op(3);
  driver.frame(2);
  const Selection before = session().selection();
  driver.press(ImGuiKey_R, ImGuiMod_Ctrl);
  EXPECT_EQ(driver.ui().state().message, "Reloaded");
  EXPECT_EQ(session().selection(), before);
}

TEST_F(Ui, QuestionMarkShowsTheKeys) {
  Driver driver(session(), Panel::all);
  driver.frame(4);
  const int before = driver.vertices();
  driver.type("?");
  EXPECT_GT(driver.vertices(), before + 200);
  driver.press(ImGuiKey_Escape);
  EXPECT_LT(driver.vertices(), before + 200);
}

TEST_F(Ui, ClickingAnIncidentOpensIt) {
  Driver driver(session(), Panel::runs);
  driver.frame(4);
  ASSERT_TRUE(driver.click("90"));
  EXPECT_EQ(session().incident()->doc.step, 90);
  EXPECT_EQ(verdict_page(session()).state, VerdictPage::State::not_replayed);
}

TEST_F(Ui, ADamagedIncidentIsSaidAndTheOthersCanBeOpened) {
  for (const testing::Damage& damage : testing::all_damages()) {
    SCOPED_TRACE(damage.name);
    const std::string run = temp_.path() + "/" + damage.name;
    testing::FixtureOptions options;
    options.incidents = 2;
    damage.make(testing::write_run(run, options));
    Result<Session> opened = Session::open(run);
    ASSERT_TRUE(opened) << opened.error().text();
    EXPECT_EQ(opened->incident()->doc.step, 90);
    // The list alone is clicked: beside the trace the number of a step may be that of an op.
    const auto click = [&](const char* step) {
      Driver driver(*opened, Panel::runs);
      driver.frame(4);
      EXPECT_TRUE(driver.click(step)) << step;
    };
    click("131");
    EXPECT_EQ(opened->incident(), nullptr);
    EXPECT_NE(verdict_page(*opened).headline.find(damage.says), std::string::npos);
    {
      Driver driver(*opened, Panel::all);
      driver.frame(4);
      EXPECT_EQ(driver.bad_vertices(), 0);
    }
    click("90");
    EXPECT_NE(opened->incident(), nullptr);
  }
}

TEST_F(Ui, DefaultLayoutShowsEveryPanel) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  for (const char* title : {"Verdict", "Norms", "Trace", "Tensor", "Runs"})
    EXPECT_TRUE(Driver::shows(title)) << title;
  for (const char* item : {"Weight norm", "##filter", "90"}) EXPECT_TRUE(driver.sees(item)) << item;
}

TEST_F(Ui, SurvivesARunThatVanishesOrBreaks) {
  Driver driver(session(), Panel::all);
  driver.frame(4);
  std::filesystem::resize_file(snapshot_, 64);
  EXPECT_TRUE(session().poll());
  driver.frame(3);
  EXPECT_EQ(session().incident(), nullptr);
  std::filesystem::remove_all(dir());
  EXPECT_FALSE(session().poll());
  driver.press(ImGuiKey_R, ImGuiMod_Ctrl);
  driver.frame(3);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

}  // namespace
}  // namespace nanquest::viewer
