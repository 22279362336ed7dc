// What changed first is found in the history, in the order in which it changed.
#include "probe/step/what_moved.h"

#include <gtest/gtest.h>

#include "probe/step/history.h"

namespace nanquest::testing {
namespace {

struct Row {
  double lr = 1e-3, norm = 1, first_layer = 10, last_layer = 5;
};

std::vector<SeriesTable> history_of(const std::vector<Row>& rows) {
  SeriesTable scalars{.name = "scalars", .columns = std::vector<std::string>(kScalars, "any"), .values = {}};
  SeriesTable weights{.name = "weight_norm", .columns = {"first", "last"}, .values = {}};
  scalars.values.resize(rows.size() * kScalars);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto set = [&](Scalar column, double value) {
      scalars.values[i * kScalars + static_cast<std::size_t>(column)] = value;
    };
    set(Scalar::step, static_cast<double>(i));
    set(Scalar::lr, rows[i].lr);
    set(Scalar::grad_norm, rows[i].norm);
    weights.values.insert(weights.values.end(), {rows[i].first_layer, rows[i].last_layer});
  }
  return {scalars, weights};
}

TEST(WhatMoved, names_rate_norm_and_the_layer_that_grew_most_in_their_order) {
  std::vector<Row> rows(140);
  for (std::size_t i = 98; i < rows.size(); ++i) rows[i].lr = 1e-2;
  for (std::size_t i = 101; i < rows.size(); ++i) rows[i].first_layer = 15, rows[i].last_layer = 20;
  for (std::size_t i = 104; i < rows.size(); ++i) rows[i].norm = 7;
  EXPECT_EQ(
      what_moved(history_of(rows), 100),
      "the learning rate rose 10-fold at step 98, then the weights of last grew 4-fold at step 101, then the "
      "gradient norm grew 7-fold at step 104");
}

TEST(WhatMoved, says_nothing_where_nothing_moved_or_nothing_is_known) {
  EXPECT_EQ(what_moved(history_of(std::vector<Row>(140)), 100), "");
  EXPECT_EQ(what_moved({}, 100), "");
}

TEST(WhatMoved, compares_with_the_first_step_where_there_is_no_earlier_one) {
  std::vector<Row> rows(40);
  for (std::size_t i = 1; i < rows.size(); ++i) rows[i].last_layer = 5.0 * static_cast<double>(i + 1);
  EXPECT_EQ(what_moved(history_of(rows), 1), "the weights of last grew 40-fold at step 1");
}

}  // namespace
}  // namespace nanquest::testing
