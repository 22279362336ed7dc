// The map of layers in the norms panel: folded by module, searched, coloured by what is in view.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;
using testing::norms_of;

class Map : public testing::OpenStory {
 protected:
  /// 40 steps of a decoder of so many blocks of four layers; the first value of the first layer is `first`.
  void decoder(int blocks, double first = 1) {
    std::vector<SeriesTable> tables = {{"scalars", {"step"}, {}}, {"grad_norm", {"model.embed.weight"}, {}}};
    for (int b = 0; b < blocks; ++b)
      for (const char* part : {"attn.q.weight", "attn.o.weight", "mlp.up.weight", "mlp.down.weight"})
        tables[1].columns.push_back("model.layers." + std::to_string(b) + "." + part);
    for (int step = 0; step < 40; ++step) {
      tables[0].values.push_back(step);
      for (std::size_t c = 0; c < tables[1].columns.size(); ++c)
        tables[1].values.push_back(step + c == 0 ? first
                                                 : 1 + 0.1 * static_cast<double>((step * 7 + c) % 10));
    }
    testing::write_series(dir(), tables);
    ASSERT_TRUE(session().reload());
    session().select_layer("");
  }
  static void open_settings(Driver& driver) {
    driver.ui().run_named("Norms as Heat map");
    driver.frame(3);
    ASSERT_TRUE(driver.click("Map settings"));
    driver.frame(2);
  }
  /// The middle of a row, in the plot (`right` > 0) or in the names beside it.
  static ImVec2 place(double row, float right) {
    ImPool<ImPlotPlot>& plots = ImPlot::GetCurrentContext()->Plots;
    for (int i = 0; i < plots.GetBufSize(); ++i)
      if (const ImPlotPlot& plot = *plots.GetByIndex(i);
          (plot.Axes[ImAxis_Y1].Flags & ImPlotAxisFlags_Invert) != 0) {
        const ImPlotRange& shown = plot.Axes[ImAxis_Y1].Range;
        const double share = (row + 0.5 - shown.Min) / (shown.Max - shown.Min);
        return {right + (right > 0 ? plot.PlotRect.Min.x : plot.PlotRect.Min.x - 10),
                plot.PlotRect.Min.y + static_cast<float>(share) * plot.PlotRect.GetHeight()};
      }
    return {0, 0};
  }
  static const std::vector<LayerRows::Row>& rows(Driver& driver) { return norms_of(driver).rows.rows(); }
};

TEST_F(Map, AClickOnANameUnfoldsAndFolds) {
  decoder(40);
  Driver driver(session(), Panel::norms);
  norms_of(driver).plots = NormsPanel::heat_map;
  driver.frame(4);
  ASSERT_EQ(rows(driver).size(), 41u);
  driver.click_at(place(3, 0));
  ASSERT_EQ(rows(driver).size(), 42u);
  EXPECT_EQ(rows(driver)[3].name, "model.layers.2.attn");
  EXPECT_EQ(session().selection().layer, "");
  driver.click_at(place(3, 0));
  EXPECT_EQ(rows(driver)[3].name, "model.layers.2.attn.q.weight");
  driver.click_at(place(3, 0));
  EXPECT_EQ(session().selection().layer, "model.layers.2.attn.q.weight") << "a layer is chosen";
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, true);
  driver.click_at(place(3, 0));
  driver.click_at(place(3, 0));
  ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, false);
  driver.frame(2);
  EXPECT_EQ(rows(driver).size(), 41u);
  EXPECT_EQ(rows(driver)[3].name, "model.layers.2");
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(Map, AClickInAModulesRowChoosesTheStepAlone) {
  decoder(40);
  Driver driver(session(), Panel::norms);
  norms_of(driver).plots = NormsPanel::heat_map;
  driver.frame(4);
  driver.click_at(place(5, 300));
  EXPECT_NE(session().selection().step, 131);
  EXPECT_EQ(session().selection().layer, "");
  EXPECT_EQ(rows(driver).size(), 41u);
  driver.click_at(place(0, 300));
  EXPECT_EQ(session().selection().layer, "model.embed.weight");
}

/// 1,601 rows in about 700 pixels: several share one, and the chosen one is drawn above them.
TEST_F(Map, TheChosenRowIsDrawnHoweverManyThereAre) {
  decoder(400);
  Driver driver(session(), Panel::norms);
  norms_of(driver).plots = NormsPanel::heat_map;
  driver.ui().run_named("Norms as Heat map");
  driver.frame(3);
  driver.ui().run_named("Unfold all layers");
  driver.frame(3);
  ASSERT_EQ(rows(driver).size(), 1601u);
  EXPECT_EQ(norms_of(driver).drawn.rows_per_line, 2u);
  const ImU32 frame = faint(colour().strong, 0.86f);
  EXPECT_EQ(driver.coloured(frame), 0);
  session().select_layer("model.layers.399.mlp.down.weight");
  driver.frame(3);
  EXPECT_GT(driver.coloured(frame), 0);
  driver.ui().run_named("Fold layers by module");
  driver.frame(3);
  EXPECT_GT(driver.coloured(frame), 0) << "its module's row";
  session().select_layer("model.layers.7.attn.o.weight");
  driver.frame(3);
  EXPECT_GT(rows(driver).size(), 401u) << "unfolded for it";
  EXPECT_GT(driver.coloured(frame), 0);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(Map, WordsNarrowItsRows) {
  decoder(40);
  Driver driver(session(), Panel::norms);
  open_settings(driver);
  ASSERT_TRUE(driver.click("##map layers"));
  driver.type("layers.1 attn");
  EXPECT_EQ(rows(driver).size(), 22u) << "of blocks 1 and 10 to 19 two layers each";
  driver.type(" nonsense");
  EXPECT_TRUE(rows(driver).empty());
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(Map, TheSettingsFoldAndSayWhatACellShows) {
  decoder(40);
  Driver driver(session(), Panel::norms);
  open_settings(driver);
  ASSERT_TRUE(driver.click("Unfold all layers"));
  EXPECT_EQ(rows(driver).size(), 161u);
  ASSERT_TRUE(driver.click("smallest value"));
  EXPECT_EQ(norms_of(driver).choices.value, CellValue::smallest);
  driver.frame(2);
  const std::vector<std::uint8_t> smallest = norms_of(driver).drawn.tints;
  ASSERT_TRUE(driver.click("Fold layers by module"));
  EXPECT_EQ(rows(driver).size(), 41u);
}

/// A single value of 1e12 among values from 1 to 2.
TEST_F(Map, OneExtremeCellLeavesTheOthersTheirColours) {
  decoder(10, 1e12);
  Driver driver(session(), Panel::norms);
  driver.ui().run_named("Norms as Heat map");
  driver.frame(3);
  const auto colours = [&] {
    const std::vector<std::uint8_t>& tints = norms_of(driver).drawn.tints;
    return std::set<std::uint8_t>(tints.begin(), tints.end()).size();
  };
  EXPECT_GE(colours(), 10u);
  driver.ui().run_named("Map colours from the smallest to the largest value");
  driver.frame(3);
  EXPECT_LE(colours(), 8u) << "1 to 2 is a fortieth of 12 powers of ten";
  EXPECT_NEAR(norms_of(driver).drawn.colours.high, 1e12, 1);
}

}  // namespace
}  // namespace nanquest::viewer
