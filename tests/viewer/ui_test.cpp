// The panels without a backend: what is drawn, what clicks and keys do, and that no NaN reaches a vertex.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "probe/snapshot/atomic_file.h"
#include "replay/verdict/json.h"
#include "tests/viewer/damage.h"
#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/layouts.h"
#include "viewer/ui/marks.h"
#include "viewer/ui/pace.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;
using testing::norms_of;
using testing::trace_of;

class UiTest : public testing::OpenStory {};

TEST_F(UiTest, EveryPanelDrawsOnlyFiniteVertices) {
  std::vector<Panel> panels = {Panel::all};
  for (const PanelInfo& info : all_panels()) panels.push_back(info.panel);
  testing::write_ranks(dir(), 6);
  Session of_ranks = open(dir());
  for (const Panel panel : panels)
    for (const float width : {1280.0f, 400.0f}) {
      Driver driver(panel == Panel::ranks ? of_ranks : session(), panel, width, 600);
      driver.frame(5);
      EXPECT_GT(driver.vertices(), 300) << panel_name(panel);
      EXPECT_EQ(driver.bad_vertices(), 0) << panel_name(panel);
    }
}

TEST_F(UiTest, EveryStatisticDrawsOnlyFiniteVertices) {
  Driver norms(session(), Panel::norms);
  for (int s = 0; s < kStatistics; ++s) {
    session().select_statistic(static_cast<Statistic>(s));
    norms.frame(3);
  }
  EXPECT_EQ(norms.bad_vertices(), 0);
}

TEST_F(UiTest, EveryTensorDrawsOnlyFiniteVertices) {
  Driver driver(session(), Panel::tensor);
  const std::vector<StoredTensor> tensors = session().incident()->tensors;
  for (const StoredTensor& tensor : tensors) {
    session().select_tensor(tensor.path);
    driver.frame(2);
    EXPECT_GT(driver.vertices(), 300) << tensor.path;
  }
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(UiTest, NonFiniteValuesAreLoud) {
  Driver driver(session(), Panel::norms);
  driver.frame(4);
  EXPECT_GT(driver.coloured(mark_colour(Mark::nan)), 40);      // a whole column of cells, and the lane
  EXPECT_GT(driver.coloured(mark_colour(Mark::pos_inf)), 20);  // step 90
  session().select_statistic(Statistic::weight);               // holds nothing but finite numbers
  driver.frame(4);
  EXPECT_LT(driver.coloured(mark_colour(Mark::pos_inf)), 20);
}

TEST_F(UiTest, GreenIsAFixThatWasVerified) {
  const auto green = [](Session& shown) {
    Driver driver(shown, Panel::verdict);
    driver.frame(4);
    return driver.coloured(mark_colour(Mark::verified));
  };
  EXPECT_GT(green(session()), 0);
  Result<Verdict> verdict = read_verdict(verdict_path(snapshot_));
  ASSERT_TRUE(verdict);
  verdict->advice = verdict->fix->advice;
  verdict->fix.reset();
  ASSERT_TRUE(write_file_atomically(verdict_path(snapshot_), to_json(*verdict)));
  ASSERT_TRUE(session().reload());
  EXPECT_EQ(green(session()), 0) << "on a change that was not verified";
}

TEST_F(UiTest, ClickingAStatisticShowsIt) {
  Driver driver(session(), Panel::norms);
  driver.frame(4);
  ASSERT_TRUE(driver.click("Weight norm"));
  EXPECT_EQ(session().selection().statistic, Statistic::weight);
  EXPECT_FALSE(driver.click("No such button"));
  ASSERT_TRUE(driver.click("Heat map"));
  EXPECT_EQ(norms_of(driver).plots, NormsPanel::heat_map);
}

TEST_F(UiTest, ClickingAnOpSelectsItEverywhere) {
  Driver driver(session(), Panel::trace);
  driver.frame(4);
  const std::int32_t culprit = session().selection().op;
  const std::string before = std::to_string(culprit - 2);
  ASSERT_TRUE(driver.click(before));
  EXPECT_EQ(session().selection().op, culprit - 2);
  EXPECT_EQ(session().selection().layer, "blocks.3.mlp.up");
  EXPECT_EQ(session().selection().tensor, "parameters/blocks.3.mlp.up.weight");
}

TEST_F(UiTest, BracketsWalkAlongTheData) {
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

TEST_F(UiTest, ArrowsMoveThroughTheFilteredTrace) {
  Driver driver(session(), Panel::trace);
  driver.frame(4);
  const std::int32_t culprit = session().selection().op;
  driver.click(std::to_string(culprit));
  driver.press(ImGuiKey_UpArrow);
  EXPECT_EQ(session().selection().op, culprit - 1);
  driver.press(ImGuiKey_DownArrow);
  EXPECT_EQ(session().selection().op, culprit);
}

TEST_F(UiTest, ColumnsSortTheTrace) {
  Driver driver(session(), Panel::trace);
  driver.frame(4);
  const std::vector<OpId> as_run = trace_of(driver).visible_ops;
  ASSERT_TRUE(driver.click("Max |x|"));
  std::vector<OpId> sorted = as_run;
  sort_ops(*session().incident(), {TraceColumn::written, true}, sorted);
  EXPECT_NE(sorted, as_run);
  EXPECT_EQ(trace_of(driver).visible_ops, sorted) << "numbers: largest first";
  const OpId chosen{session().selection().op};
  const auto at = std::ranges::find(sorted, chosen);
  ASSERT_NE(at, sorted.begin());
  driver.press(ImGuiKey_UpArrow);
  EXPECT_EQ(session().selection().op, (at - 1)->row()) << "arrows go along the list as it is sorted";
  driver.click("Max |x|");
  driver.click("Max |x|");
  EXPECT_EQ(trace_of(driver).visible_ops, as_run);
}

TEST_F(UiTest, SlashFilters) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  driver.type("/");
  driver.frame(3);
  driver.type("softmax");
  EXPECT_STREQ(trace_of(driver).filter, "softmax");
  EXPECT_EQ(trace_of(driver).visible_ops.size(), session().incident()->trace.filter("softmax").size());
}

TEST_F(UiTest, AFilterThatCannotBeShownTakesNoKeysLater) {
  session().restore({});
  Driver driver(session(), Panel::trace);
  driver.frame(3);
  driver.type("/");
  driver.frame(2);
  session().select_incident(1);
  driver.frame(3);
  driver.type("x");
  EXPECT_STREQ(trace_of(driver).filter, "");
}

TEST_F(UiTest, ControlRReloadsAndKeepsTheSelection) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  session().select_op(3);
  driver.frame(2);
  const Selection before = session().selection();
  driver.press(ImGuiKey_R, ImGuiMod_Ctrl);
  EXPECT_EQ(driver.ui().state().message, "Reloaded");
  EXPECT_EQ(session().selection(), before);
}

TEST_F(UiTest, QuestionMarkShowsTheKeys) {
  Driver driver(session(), Panel::all);
  driver.frame(4);
  const int before = driver.vertices();
  driver.type("?");
  EXPECT_GT(driver.vertices(), before + 200);
  driver.press(ImGuiKey_Escape);
  EXPECT_LT(driver.vertices(), before + 200);
}

TEST_F(UiTest, ClickingAnIncidentOpensIt) {
  Driver driver(session(), Panel::runs);
  driver.frame(4);
  ASSERT_TRUE(driver.click("90"));
  EXPECT_EQ(session().incident()->doc.step, 90);
  EXPECT_EQ(verdict_page(session()).state, VerdictPage::State::not_replayed);
}

/// Whatever selected it, a link or the run itself: the list is where it is, and stays where a person scrolls
/// to.
TEST_F(UiTest, TheSelectedIncidentIsSeenInALongList) {
  for (int step = 200; step < 280; ++step)
    std::filesystem::copy_file(incident_path(dir(), 90, 0), incident_path(dir(), step, 0));
  ASSERT_TRUE(session().reload());
  ASSERT_EQ(session().incidents().size(), 82u);
  const auto seen = [](Driver& driver, const char* step) {
    const auto item = driver.items().find(step);
    return item != driver.items().end() && item->second.y0 >= 0 && item->second.y1 <= 400;
  };
  Driver driver(session(), Panel::runs, 1280, 400);
  driver.frame(4);
  EXPECT_FALSE(seen(driver, "270"));
  session().select_incident(72);
  driver.frame(4);
  EXPECT_TRUE(seen(driver, "270"));
  driver.wheel(640, 300, 100);
  driver.frame(8);
  EXPECT_FALSE(seen(driver, "270"));
}

TEST_F(UiTest, ADamagedIncidentIsSaidAndTheOthersCanBeOpened) {
  for (const testing::Damage& damage : testing::all_damages()) {
    SCOPED_TRACE(damage.name);
    const std::string run = temp_.path() + "/" + damage.name;
    testing::FixtureOptions options;
    options.incidents = 2;
    options.replayed = false;
    damage.make(testing::write_run(run, options));
    Result<Session> opened = Session::open(run);
    ASSERT_TRUE(opened) << opened.error().text();
    EXPECT_EQ(opened->incident()->doc.step, 90);
    // Only the list is clicked: in the trace a step's number may be that of an op.
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

TEST_F(UiTest, DefaultLayoutShowsEveryPanel) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  // Those that share a box are tabs of it, one of them in front.
  std::set<Panel> front;
  for (const Tabs& tabs : tabs_of(all_layouts().front())) front.insert(tabs.front);
  for (const PanelInfo& panel : all_panels())
    EXPECT_EQ(Driver::shows(panel.title), front.count(panel.panel) == 1) << panel.title;
  for (const char* item : {"Weight norm", "##filter", "90"}) EXPECT_TRUE(driver.sees(item)) << item;
}

TEST_F(UiTest, SurvivesARunThatVanishesOrBreaks) {
  Driver driver(session(), Panel::all);
  driver.frame(4);
  std::filesystem::resize_file(snapshot_, 64);
  EXPECT_TRUE(session().poll());
  driver.frame(3);
  EXPECT_EQ(session().incident(), nullptr);
  std::filesystem::remove_all(dir());
  EXPECT_TRUE(session().poll());
  const std::size_t incidents = session().incidents().size();
  driver.press(ImGuiKey_R, ImGuiMod_Ctrl);
  driver.frame(3);
  EXPECT_EQ(session().incidents().size(), incidents) << "what was read stays";
  EXPECT_GT(driver.coloured(ImGui::GetColorU32(colour().orange)), 40) << "and it is said";
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST(Pace, DrawsAFewFramesAfterTheLastThingThatHappened) {
  Pace pace;
  int frames = 0;
  for (; !pace.may_wait(); ++frames) pace.next(false);
  EXPECT_GE(frames, 3);
  pace.next(true);
  EXPECT_FALSE(pace.may_wait());
  for (int i = 0; i < 10; ++i) pace.next(i % 2 == 0);
  EXPECT_FALSE(pace.may_wait()) << "what happens while it settles is drawn out as well";
}

TEST(Pace, DrawsNothingWhileNothingHappens) {
  Pace pace;
  while (!pace.may_wait()) pace.next(false);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(pace.next(false));
  EXPECT_TRUE(pace.next(true)) << "and at once when something does";
}

TEST_F(UiTest, WhatIsHeldDownIsDrawn) {
  Driver driver(session(), Panel::all);
  driver.frame(3);
  EXPECT_FALSE(input_waits());
  ImGui::GetIO().AddKeyEvent(ImGuiKey_DownArrow, true);
  driver.frame(5);
  EXPECT_TRUE(input_waits()) << "a held key repeats";
  ImGui::GetIO().AddKeyEvent(ImGuiKey_DownArrow, false);
  driver.frame(2);
  EXPECT_FALSE(input_waits());
  ImGui::GetIO().AddMouseButtonEvent(0, true);
  driver.frame(2);
  EXPECT_TRUE(input_waits()) << "and a held button drags";
}

/// The press and the release of a quick click come in the last frame before the loop would sleep.
TEST_F(UiTest, AQuickClickIsDrawnBeforeTheWindowSleeps) {
  Driver driver(session(), Panel::runs);
  Pace pace;
  for (driver.frame(); !pace.may_wait(); driver.frame()) pace.next(input_waits());
  ASSERT_TRUE(driver.sees("90"));
  driver.point_at("90");
  driver.frame(2);
  ImGuiIO& io = ImGui::GetIO();
  io.AddMouseButtonEvent(0, true);
  io.AddMouseButtonEvent(0, false);
  pace.next(input_waits());
  for (driver.frame(); !pace.may_wait(); driver.frame()) pace.next(input_waits());
  EXPECT_FALSE(input_waits());
  EXPECT_EQ(session().incident()->doc.step, 90);
}

}  // namespace
}  // namespace nanquest::viewer
