// The layers at one step as a table: its numbers are those of the series, its order what was asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/viewer/story.h"
#include "viewer/model/layer_table.h"
#include "viewer/model/numbers.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

constexpr double kTableInf = std::numeric_limits<double>::infinity();

/// Three layers over three steps; the weights of "b" are not on record.
History three() {
  const double nan = std::nan("");
  return History({{"scalars", {"step"}, {10, 20, 30}},
                  {"grad_norm", {"b", "a", "c.x"}, {1, 2, 3, 4, nan, 6, 7, kTableInf, 0.5}},
                  {"weight_norm", {"a", "c.x"}, {5, 6, 5, 6, 5, 6}}});
}

std::vector<std::string> names(const LayerTable& table) {
  std::vector<std::string> out;
  for (const LayerTable::Row& row : table.rows) out.push_back(row.layer);
  return out;
}

using NameList = std::vector<std::string>;

TEST(LayerTable, HoldsEveryStatisticAtTheStepAndWhatWasOverTheRows) {
  const LayerTable table = layer_table(three(), Statistic::gradient, 1, 0, 3);
  EXPECT_EQ(table.step, 20);
  EXPECT_EQ(table.columns, (NameList{"Gradient norm", "Weight norm", "Smallest", "Largest", "NaN", "Inf"}));
  EXPECT_EQ(names(table), (NameList{"b", "a", "c.x"}));
  using Values = std::vector<std::optional<double>>;
  EXPECT_EQ(table.rows[0].values, (Values{4, std::nullopt, 1, 7, 0, 0}));
  EXPECT_TRUE(std::isnan(*table.rows[1].values[0]));
  EXPECT_EQ(table.rows[1].values[3], 2) << "the largest that is finite";
  EXPECT_EQ(table.rows[1].values[4], 1);
  EXPECT_EQ(table.rows[1].values[5], 1);
  EXPECT_EQ(table.rows[2].values, (Values{6, 6, 0.5, 6, 0, 0}));
  const LayerTable last = layer_table(three(), Statistic::gradient, 2, 2, 3);
  EXPECT_EQ(last.rows[2].values, (Values{0.5, 6, 0.5, 0.5, 0, 0})) << "of the rows that are shown alone";
}

TEST(LayerTable, SortsWhatIsNotFiniteAboveAllNumbers) {
  LayerTable table = layer_table(three(), Statistic::gradient, 1, 0, 3);
  table.sort(0, true);
  EXPECT_EQ(names(table), (NameList{"a", "c.x", "b"})) << "NaN, 6, 4";
  table.sort(0, false);
  EXPECT_EQ(names(table), (NameList{"b", "c.x", "a"}));
  table.sort(1, false);
  EXPECT_EQ(names(table), (NameList{"a", "c.x", "b"})) << "what has no value is last";
  table.sort(1, true);
  EXPECT_EQ(names(table), (NameList{"c.x", "a", "b"}));
  table.sort(-1, false);
  EXPECT_EQ(names(table), (NameList{"a", "b", "c.x"}));
  LayerTable end = layer_table(three(), Statistic::gradient, 2, 0, 3);
  end.sort(0, true);
  EXPECT_EQ(names(end), (NameList{"a", "b", "c.x"})) << "+Inf, 7, 0.5";
}

TEST(LayerTable, WordsFindLayers) {
  EXPECT_EQ(names(layer_table(three(), Statistic::gradient, 0, 0, 3, "X c")), NameList{"c.x"});
  EXPECT_TRUE(layer_table(three(), Statistic::gradient, 0, 0, 3, "none").rows.empty());
  EXPECT_TRUE(layer_table(History(), Statistic::gradient, 0, 0, 0).rows.empty());
}

class LayersOfARun : public testing::OpenStory {};

/// The selected step, or the last.
TEST_F(LayersOfARun, AreThoseOfTheSelectedStep) {
  EXPECT_EQ(layer_row(session().history(), 40), 40u);
  EXPECT_EQ(layer_row(session().history(), -1), session().history().rows() - 1);
  session().select_step(40);
  const std::string text = panel_text(session(), Panel::norms);
  EXPECT_TRUE(says(text, "at step 40")) << text;
  const History& history = session().history();
  const auto& layers = history.layers(Statistic::weight);
  const auto head =
      static_cast<std::size_t>(std::find(layers.begin(), layers.end(), "head") - layers.begin());
  EXPECT_TRUE(says(text, short_number(history.series(Statistic::weight, head)[40]))) << text;
}

}  // namespace
}  // namespace nanquest::viewer
