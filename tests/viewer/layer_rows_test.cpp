// The rows of the map of layers: folded by module, unfolded where a layer is chosen; and the range of
// colours.
#include "viewer/model/layer_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "viewer/model/map_colours.h"

namespace nanquest::viewer {
namespace {

/// As Hugging Face names them.
std::vector<std::string> decoder(int blocks) {
  std::vector<std::string> names = {"model.embed_tokens.weight"};
  for (int b = 0; b < blocks; ++b)
    for (const char* part :
         {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
          "self_attn.o_proj.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight", "mlp.down_proj.weight",
          "input_layernorm.weight", "post_attention_layernorm.weight"})
      names.push_back("model.layers." + std::to_string(b) + "." + part);
  names.insert(names.end(), {"model.norm.weight", "lm_head.weight"});
  return names;
}

std::vector<std::string> names_of(const LayerRows& rows) {
  std::vector<std::string> names;
  for (const LayerRows::Row& row : rows.rows()) names.push_back(row.name);
  return names;
}

/// Every layer is in exactly one row.
void expect_all(const LayerRows& rows, std::size_t layers) {
  std::set<std::uint32_t> seen;
  std::size_t count = 0;
  for (std::size_t r = 0; r < rows.rows().size(); ++r)
    for (const std::uint32_t layer : rows.rows()[r].layers) {
      seen.insert(layer);
      ++count;
      EXPECT_EQ(rows.row_of(layer), static_cast<std::ptrdiff_t>(r));
    }
  EXPECT_EQ(seen.size(), layers);
  EXPECT_EQ(count, layers);
}

TEST(LayerRows, AFewLayersAreARowEach) {
  LayerRows rows;
  const std::vector<std::string> layers = decoder(4);
  rows.fit(layers, "");
  EXPECT_EQ(names_of(rows), layers);
  EXPECT_FALSE(rows.folded());
}

TEST(LayerRows, ManyAreFoldedByModule) {
  LayerRows rows;
  const std::vector<std::string> layers = decoder(300);
  rows.fit(layers, "");
  ASSERT_EQ(rows.rows().size(), 303u) << "a row a block";
  EXPECT_TRUE(rows.folded());
  EXPECT_EQ(rows.rows()[0].name, "model.embed_tokens.weight");
  EXPECT_EQ(rows.rows()[1].name, "model.layers.0");
  EXPECT_EQ(rows.rows()[1].layers.size(), 9u);
  expect_all(rows, layers.size());
  rows.fit(decoder(40), "");
  EXPECT_EQ(rows.rows().size(), 43u);
  rows.fit(decoder(8), "");
  EXPECT_EQ(rows.rows().size(), 3u + 8 * 4) << "two modules and two layers a block";
  EXPECT_EQ(rows.rows()[1].name, "model.layers.0.self_attn");
}

TEST(LayerRows, AModuleUnfoldsAndFolds) {
  LayerRows rows;
  const std::vector<std::string> layers = decoder(300);
  rows.fit(layers, "");
  const std::uint64_t version = rows.version();
  rows.unfold(1);
  EXPECT_NE(rows.version(), version);
  EXPECT_EQ(rows.rows().size(), 303u - 1 + 4);
  EXPECT_EQ(rows.rows()[1].name, "model.layers.0.self_attn");
  expect_all(rows, layers.size());
  rows.fold(1);
  EXPECT_EQ(rows.rows()[1].name, "model.layers.0");
  rows.fold(1);
  EXPECT_EQ(rows.rows()[1].name, "model.layers");
  EXPECT_EQ(rows.rows()[1].layers.size(), 2700u);
  rows.unfold_all();
  EXPECT_EQ(rows.rows().size(), layers.size());
  rows.fold_all();
  EXPECT_EQ(rows.rows().size(), 303u);
}

TEST(LayerRows, TheChosenLayerHasARowOfItsOwn) {
  LayerRows rows;
  const std::vector<std::string> layers = decoder(300);
  rows.fit(layers, "");
  const std::ptrdiff_t layer =
      std::ranges::find(layers, "model.layers.200.mlp.up_proj.weight") - layers.begin();
  const std::ptrdiff_t row = rows.show(layer);
  ASSERT_GE(row, 0);
  EXPECT_EQ(rows.rows()[static_cast<std::size_t>(row)].name, "model.layers.200.mlp.up_proj.weight");
  EXPECT_EQ(rows.rows().size(), 303u + 3 + 2) << "and no other block was unfolded";
  rows.fold(static_cast<std::size_t>(row));
  EXPECT_TRUE(rows.rows()[static_cast<std::size_t>(rows.show(layer))].is_module())
      << "a person folded it since";
  EXPECT_EQ(rows.show(-1), -1);
}

TEST(LayerRows, WordsNarrowThem) {
  LayerRows rows;
  rows.fit(decoder(300), "layers.7. q_proj");
  EXPECT_EQ(names_of(rows), std::vector<std::string>{"model.layers.7.self_attn.q_proj.weight"});
  rows.fit(decoder(300), "nonsense");
  EXPECT_TRUE(rows.rows().empty());
  EXPECT_EQ(rows.show(3), -1);
}

TEST(LayerRows, OddNamesLoseNoLayer) {
  for (const std::vector<std::string>& layers : {std::vector<std::string>{"head", "head.weight", "head.bias"},
                                                 {"a", "a"},
                                                 {"a", "a", "a.b"},
                                                 {"", "a.", ".b", "a..c"},
                                                 {"x.y", "z", "x.w"},
                                                 {}}) {
    LayerRows rows;
    rows.fit(layers, "");
    expect_all(rows, layers.size());
    for (std::size_t layer = 0; layer < layers.size(); ++layer)
      EXPECT_GE(rows.show(static_cast<std::ptrdiff_t>(layer)), 0);
    rows.unfold_all();
    expect_all(rows, layers.size());
  }
}

HeatMap map_of(std::size_t layers, std::size_t columns, const std::vector<double>& values) {
  HeatMap map;
  map.layers = layers;
  map.columns = columns;
  map.cells.resize(layers * columns);
  for (std::size_t i = 0; i < values.size(); ++i) map.cells[i].extremes.add(values[i]);
  map.edges.resize(columns + 1);
  map.all.resize(columns);
  return map;
}

TEST(MapColours, AFoldedLineIsTheExtremesOfItsLayers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const HeatMap map = map_of(3, 2, {1, 5, 3, nan, 2, 4});
  const HeatMap lines = folded(map, {{0, 2}, {1}});
  ASSERT_EQ(lines.layers, 2u);
  EXPECT_EQ(value_of(lines.at(0, 0), CellValue::largest), 2);
  EXPECT_EQ(value_of(lines.at(0, 0), CellValue::smallest), 1);
  EXPECT_EQ(value_of(lines.at(0, 1), CellValue::largest), 5);
  EXPECT_TRUE(std::isnan(value_of(lines.at(1, 1), CellValue::largest)));
  EXPECT_EQ(lines.at(1, 1).extremes.nan, 1u);
}

/// Against a sorted list of all values.
TEST(MapColours, TheRangeIsFromPercentileToPercentileOfWhatIsSeen) {
  std::mt19937 random(5);
  std::lognormal_distribution<double> normal(0, 2);
  std::vector<double> values(20 * 51);
  for (double& value : values) value = normal(random);
  values[3] = 1e30;
  values[4] = 1e-30;
  values[5] = 0;
  const HeatMap map = map_of(20, 51, values);
  std::vector<double> sorted = values;
  std::erase(sorted, 0.0);
  std::ranges::sort(sorted);
  const auto at = [&](double percent) {
    return sorted[static_cast<std::size_t>(
        std::llround(percent / 100 * static_cast<double>(sorted.size() - 1)))];
  };
  const ColourRange range = colour_range(map, 0, 20, CellValue::largest, 2);
  EXPECT_EQ(range.low, at(2));
  EXPECT_EQ(range.high, at(98));
  EXPECT_EQ(range.place(range.low), 0);
  EXPECT_EQ(range.place(range.high), 1);
  EXPECT_EQ(range.place(1e30), 1);
  EXPECT_EQ(range.place(0), 0);
  EXPECT_NEAR(range.place(std::sqrt(range.low * range.high)), 0.5, 1e-12);
  const ColourRange whole = colour_range(map, 0, 20, CellValue::largest, 0);
  EXPECT_EQ(whole.low, 1e-30);
  EXPECT_EQ(whole.high, 1e30);
  EXPECT_LT(colour_range(map, 1, 20, CellValue::largest, 0).high, 1e30) << "only what is seen";
}

TEST(MapColours, OneValueOrNoneIsNoFault) {
  const ColourRange one = colour_range(map_of(1, 2, {3, 3}), 0, 1, CellValue::largest, 2);
  EXPECT_TRUE(one.any);
  EXPECT_EQ(one.place(3), 0);
  EXPECT_TRUE(std::isfinite(one.place(4)));
  EXPECT_FALSE(colour_range(map_of(1, 2, {0, -1}), 0, 1, CellValue::largest, 2).any);
  EXPECT_FALSE(colour_range(HeatMap(), 0, 5, CellValue::largest, 2).any);
}

}  // namespace
}  // namespace nanquest::viewer
