// The plots of the norms panel: what they cover, which values and steps they show.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/ui/marks.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;
using testing::norms_of;

class Norms : public testing::OpenStory {
 protected:
  /// `steps` steps of three layers with norms of `scale`; every `every`th is NaN (0: none).
  static std::vector<SeriesTable> series(int steps, int every, double scale = 1) {
    std::vector<SeriesTable> tables = {{"scalars", {"step"}, {}}, {"grad_norm", {"a", "b", "c"}, {}}};
    for (int i = 0; i < steps; ++i) {
      const double v = every > 0 && i % every == every - 1 ? std::nan("") : scale * (2 + std::sin(i * 0.1));
      tables[0].values.push_back(i);
      tables[1].values.insert(tables[1].values.end(), {v, v, v});
    }
    return tables;
  }
  /// Clicks a title of the table of layers; false if it isn't drawn. Buttons above have the same words.
  static bool click_title(Driver& driver, const std::string& title) {
    for (ImGuiTable* table : tables()) {
      for (int c = 0; c < table->ColumnsCount; ++c) {
        if (ImGui::TableGetColumnName(table, c) != title) continue;
        const ImGuiTableColumn& column = table->Columns[c];
        driver.click_at(
            {(column.MinX + column.MaxX) / 2, table->OuterRect.Min.y + ImGui::GetTextLineHeight() / 2});
        return true;
      }
    }
    return false;
  }
  static std::vector<ImGuiTable*> tables() {
    std::vector<ImGuiTable*> out;
    ImPool<ImGuiTable>& all = ImGui::GetCurrentContext()->Tables;
    for (int i = 0; i < all.GetBufSize(); ++i)
      if (ImGuiTable* table = all.TryGetMapData(i); table != nullptr && table->ColumnsCount > 4)
        out.push_back(table);
    return out;
  }
  void follow(int steps, double scale) {
    testing::write_series(dir(), series(steps, 0, scale));
    ASSERT_TRUE(session().poll());
  }
};

/// One step in 600 is bad: so much of the map may be, and a little more for what must be seen at all.
TEST_F(Norms, ABadStepDoesNotCoverItsNeighbours) {
  testing::write_series(dir(), series(20000, 600));
  ASSERT_TRUE(session().reload());
  Driver driver(session(), Panel::norms);
  norms_of(driver).plots = NormsPanel::heat_map;
  driver.frame(5);
  const double bad = driver.area(mark_colour(Mark::nan));
  EXPECT_GT(bad, 200) << "each of them is seen";
  EXPECT_LT(bad, 0.02 * 1280 * 800);
}

/// While zooming over many layers the map is coarse, and complete as soon as zooming stops; new rows don't
/// make it coarse.
TEST_F(Norms, TheMapIsCoarseForAMomentOnly) {
  constexpr int layers = 300, steps = 2000;
  std::vector<SeriesTable> tables = {{"scalars", {"step"}, {}}, {"grad_norm", {}, {}}};
  for (int layer = 0; layer < layers; ++layer) tables[1].columns.push_back("h." + std::to_string(layer));
  for (int step = 0; step < steps; ++step) {
    tables[0].values.push_back(step);
    for (int layer = 0; layer < layers; ++layer) tables[1].values.push_back(1 + step % 7 + layer);
  }
  testing::write_series(dir(), tables);
  ASSERT_TRUE(session().reload());
  Driver driver(session(), Panel::norms);
  norms_of(driver).plots = NormsPanel::both;
  driver.frame(3);
  const std::size_t whole = norms_of(driver).map.map.columns;
  EXPECT_EQ(whole, 80000u / layers);
  for (int i = 1; i <= 3; ++i) {
    driver.ui().state().steps.first = 10.0 * i;
    driver.ui().state().steps.last = 1000.0 + i;
    driver.frame();
    EXPECT_EQ(norms_of(driver).map.map.columns, 24000u / layers);
  }
  driver.frame();
  EXPECT_EQ(norms_of(driver).map.map.columns, whole);
  ASSERT_TRUE(session().reload());
  driver.frame();
  EXPECT_EQ(norms_of(driver).map.map.columns, whole);
}

/// Large text in a low window leaves no room for the bar of colours: none is drawn upside down.
TEST_F(Norms, TheBarOfColoursNeedsRoom) {
  Driver driver(session(), Panel::norms);
  apply_style(2);
  norms_of(driver).plots = NormsPanel::heat_map;
  driver.frame(5);
  const ImU32 lowest = viridis(0.5 / 64);
  EXPECT_GT(driver.area(lowest), 0);
  ImGui::GetIO().DisplaySize.y = 120;
  driver.frame(5);
  EXPECT_EQ(driver.area(lowest), 0);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(Norms, ACellIsAsWideAsItsStep) {
  Driver driver(session(), Panel::norms);  // the last of 132 steps is NaN in every layer
  norms_of(driver).plots = NormsPanel::heat_map;
  driver.frame(5);
  EXPECT_LT(driver.area(mark_colour(Mark::nan)), 1.05 * 1280 / 132 * 800);
  EXPECT_GT(driver.area(mark_colour(Mark::nan)), 0.5 * 1000 / 132 * 500);
}

TEST_F(Norms, CurvesStayInThePlotWhileFollowing) {
  Driver driver(session(), Panel::norms);
  driver.frame(5);
  follow(140, 1e6);
  driver.frame(3);
  EXPECT_GE(Driver::values_shown(true).Max, 3e6);
  EXPECT_LE(Driver::values_shown(true).Min, 1e6);
}

/// Both ways to read new rows: the window by itself, and the user's Ctrl+R.
TEST_F(Norms, NewStepsAreShownWhereAllStepsWere) {
  Driver driver(session(), Panel::norms);
  driver.frame(5);
  EXPECT_GE(driver.ui().state().steps.last, 131);
  follow(200, 1);
  driver.frame(3);
  EXPECT_GE(driver.ui().state().steps.last, 199);
  testing::write_series(dir(), series(300, 0));
  driver.press(ImGuiKey_R, ImGuiMod_Ctrl);
  EXPECT_GE(driver.ui().state().steps.last, 299);
  follow(400, 1);
  driver.frame(3);
  EXPECT_GE(driver.ui().state().steps.last, 399) << "and goes on after it";
  driver.wheel(640, 450, 3);
  const double zoomed = driver.ui().state().steps.last;
  ASSERT_LT(zoomed, 399);
  follow(500, 1);
  driver.frame(3);
  EXPECT_EQ(driver.ui().state().steps.last, zoomed) << "a zoom stays";
}

TEST_F(Norms, FollowingKeepsAZoomAndHomeEndsIt) {
  Driver driver(session(), Panel::norms);
  norms_of(driver).plots = NormsPanel::lines;
  driver.frame(5);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, true);
  const ImPlotRange all = Driver::values_shown(true);
  driver.wheel(640, 450, 2);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, false);
  const ImPlotRange zoomed = Driver::values_shown(true);
  EXPECT_LT(zoomed.Max, all.Max);
  follow(140, 1e6);
  driver.frame(3);
  EXPECT_EQ(Driver::values_shown(true).Max, zoomed.Max);
  driver.press(ImGuiKey_Home);
  EXPECT_GE(Driver::values_shown(true).Max, 3e6);
}

TEST_F(Norms, HomeEndsAZoomOfValuesThatAreNotDrawnNow) {
  Driver driver(session(), Panel::norms);
  norms_of(driver).plots = NormsPanel::lines;
  driver.frame(5);
  const ImPlotRange all = Driver::values_shown(true);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, true);
  driver.wheel(640, 450, 2);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, false);
  ASSERT_LT(Driver::values_shown(true).Max, all.Max);
  norms_of(driver).plots = NormsPanel::heat_map;
  driver.frame(2);
  driver.press(ImGuiKey_Home);
  norms_of(driver).plots = NormsPanel::lines;
  driver.frame(3);
  EXPECT_EQ(Driver::values_shown(true).Max, all.Max);
}

TEST_F(Norms, TheWheelZoomsStepsAndHidesNoLayer) {
  Driver driver(session(), Panel::norms);
  norms_of(driver).plots = NormsPanel::heat_map;
  driver.frame(5);
  const ImPlotRange layers = Driver::values_shown(false);
  const double last = driver.ui().state().steps.last;
  driver.wheel(640, 450, 3);
  EXPECT_LT(driver.ui().state().steps.last, last);
  EXPECT_EQ(Driver::values_shown(false).Min, layers.Min);
  EXPECT_EQ(Driver::values_shown(false).Max, layers.Max);
  norms_of(driver).plots = NormsPanel::lines;
  driver.frame(3);
  const ImPlotRange values = Driver::values_shown(true);
  driver.wheel(640, 450, 3);
  EXPECT_EQ(Driver::values_shown(true).Max, values.Max);
}

TEST_F(Norms, TheTableIsSortedSearchedAndLeadsToALayer) {
  Driver driver(session(), Panel::norms);
  driver.frame(5);
  ASSERT_TRUE(driver.click("Table"));
  driver.frame(3);
  EXPECT_TRUE(driver.sees("##layers"));
  const auto& layers = norms_of(driver).layers;
  ASSERT_EQ(layers.rows.size(), session().history().layers(Statistic::gradient).size());
  EXPECT_EQ(layers.rows.front().layer, "token_embedding");
  session().select_step(100);
  driver.frame(2);
  ASSERT_TRUE(click_title(driver, "Weight norm"));
  const auto weight = [&](std::size_t row) { return *layers.rows[row].values[1]; };
  for (std::size_t i = 1; i < layers.rows.size(); ++i) EXPECT_GE(weight(i - 1), weight(i));
  EXPECT_GT(weight(0), weight(layers.rows.size() - 1));
  ASSERT_TRUE(driver.click(layers.rows.front().layer));
  EXPECT_EQ(session().selection().layer, layers.rows.front().layer);
  for (const Action& action : driver.ui().actions())
    if (action.name == "Search layers") action.run();
  driver.frame(3);
  driver.type("blocks.2 mlp");
  ASSERT_EQ(layers.rows.size(), 2u);
  EXPECT_GE(weight(0), weight(1)) << "still sorted";
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(Norms, CtrlAndWheelZoomTheLayersOfTheMap) {
  Driver driver(session(), Panel::norms);
  driver.ui().run_named("Norms as Heat map");
  driver.frame(4);
  const LayerRange& range = norms_of(driver).layer_range;
  ASSERT_TRUE(range.is_all());
  const double all = range.to(), first = driver.ui().state().steps.first,
               last = driver.ui().state().steps.last;
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, true);
  driver.frame(2);
  driver.wheel(640, 400, 3);
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, false);
  driver.frame(3);
  EXPECT_LT(range.to() - range.from(), all * 0.95);
  EXPECT_EQ(driver.ui().state().steps.first, first) << "and no steps";
  EXPECT_EQ(driver.ui().state().steps.last, last);
  const double from = range.from(), to = range.to();
  driver.wheel(640, 400, 1);
  EXPECT_EQ(range.from(), from) << "without Ctrl steps alone";
  EXPECT_EQ(range.to(), to);
  EXPECT_NE(driver.ui().state().steps.first, first);
  session().select_layer("head");
  driver.frame(2);
  EXPECT_EQ(range.to(), all) << "the selected layer is the last one";
  driver.press(ImGuiKey_Home);
  driver.frame(2);
  EXPECT_TRUE(range.is_all());
  EXPECT_EQ(driver.bad_vertices(), 0);
}

}  // namespace
}  // namespace nanquest::viewer
