#include "probe/step/history.h"
#include "probe/trace/names.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nanquest {
namespace {

std::string sample(int i) {
  return std::string("s").append(std::to_string(i));
}

TEST(History, layer_is_the_name_without_its_last_component) {
  EXPECT_EQ(layer_of("blocks.3.mlp.fc.weight"), "blocks.3.mlp.fc");
  EXPECT_EQ(layer_of("fc.bias"), "fc");
  EXPECT_EQ(layer_of("weight"), "weight");
  EXPECT_EQ(layer_of(""), "");
}

TEST(History, keeps_the_last_rows_oldest_first) {
  History history(4, {"a", "b"}, {"eval"});
  for (int step = 0; step < 11; ++step) {
    history.begin_row();
    history.set(Scalar::step, step);
    history.row(LayerTable::grad_norm)[1] = 10 * step;
    history.set_samples({sample(step)});
    const std::vector<SeriesTable> tables = history.tables();
    const std::size_t rows = static_cast<std::size_t>(std::min(step + 1, 4));
    ASSERT_EQ(tables.size(), 6u);
    EXPECT_EQ(tables[0].rows(), rows);
    for (std::size_t i = 0; i < rows; ++i) {
      const int expected = step - static_cast<int>(rows) + 1 + static_cast<int>(i);
      EXPECT_EQ(tables[0].values[i * tables[0].columns.size()], expected);
      EXPECT_EQ(tables[1].values[i * 2 + 1], 10 * expected);
      EXPECT_EQ(history.samples()[i], std::vector<std::string>{sample(expected)});
    }
  }
}

TEST(History, unmeasured_columns_repeat_and_gradients_do_not) {
  History history(8, {"a"}, {"eval"});
  history.begin_row();
  EXPECT_TRUE(std::isnan(history.tables()[0].values[kScalars]));
  EXPECT_TRUE(history.set_user("eval", 2.5));
  EXPECT_FALSE(history.set_user("unknown", 1));
  history.row(LayerTable::weight_norm)[0] = 3;
  history.row(LayerTable::grad_norm)[0] = 4;
  history.set(Scalar::measured, 1);
  history.begin_row();
  const std::vector<std::span<const double>>& row = history.current();
  EXPECT_EQ(row[0][kScalars], 2.5);
  EXPECT_EQ(row[0][static_cast<std::size_t>(Scalar::measured)], 0);
  EXPECT_EQ(history.row(LayerTable::weight_norm)[0], 3);
  EXPECT_EQ(history.row(LayerTable::grad_norm)[0], 0);
}

TEST(History, table_names_are_those_of_the_file) {
  const std::vector<SeriesTable> tables = History(1, {"x"}, {}).columns();
  std::vector<std::string> names;
  for (const SeriesTable& t : tables) names.push_back(t.name);
  EXPECT_EQ(names, (std::vector<std::string>{"scalars", "grad_norm", "weight_norm", "update_ratio",
                                             "grad_amax", "weight_amax"}));
  EXPECT_EQ(tables[0].columns.front(), "step");
  EXPECT_EQ(tables[0].columns.size(), kScalars);
}

}  // namespace
}  // namespace nanquest
