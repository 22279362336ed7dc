// The series of two runs side by side: which are compared, row by row.
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/viewer/comparing.h"
#include "viewer/model/columns.h"
#include "viewer/model/comparison.h"
#include "viewer/model/numbers.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

using testing::add_column;
using testing::timed;

/// The row of a step a second time, behind itself, in every table.
void repeat(std::vector<SeriesTable>& tables, std::size_t row) {
  for (SeriesTable& t : tables) {
    const auto width = static_cast<std::ptrdiff_t>(t.columns.size());
    const auto at = t.values.begin() + static_cast<std::ptrdiff_t>(row) * width;
    const std::vector<double> again(at, at + width);
    t.values.insert(at, again.begin(), again.end());
  }
}

const SeriesDifference* series_of(const Comparison& c, const std::string& name) {
  for (const SeriesDifference& s : c.pairs[0].series)
    if (s.name == name) return &s;
  return nullptr;
}

using SeriesOfBoth = testing::Comparing;

TEST_F(SeriesOfBoth, WhatTheClockSaysIsNoDifference) {
  testing::write_series(other(), timed(132, 2000));
  const Session session = both();
  const Comparison& c = *session.comparison();
  EXPECT_EQ(series_of(c, "tokens_per_second"), nullptr);
  EXPECT_EQ(series_of(c, "gate"), nullptr) << "the probe's own";
  for (const SeriesDifference& s : c.pairs[0].series) EXPECT_FALSE(s.at) << s.name;
  EXPECT_EQ(c.headline(), "story and other are equal in all 132 steps that both have");
  for (const char* clock : {"seconds", "tokens_per_second", "train/step_time", "samples-per-second", "eta",
                            "ETA", "it/s", "tokens_per_s", "iter_ms", "time", "throughput"})
    EXPECT_TRUE(is_clock_column(clock)) << clock;
  for (const char* none : {"loss", "time_embedding_norm", "timesteps", "beta", "s", "norms", "accuracy",
                           "params", "grads_norm", ""})
    EXPECT_FALSE(is_clock_column(none)) << none;
}

TEST_F(SeriesOfBoth, AMetricThatWasNotLoggedIsNoDifference) {
  for (const bool here : {true, false}) {
    std::vector<SeriesTable> tables = testing::fixture_history();
    add_column(tables, "eval_loss", [here](std::size_t r) {
      const double measured = r < 100 ? 3.5 : 3.0;
      return here || r < 40 || r >= 60 ? measured : std::nan("");
    });
    if (!here) testing::column_of(tables, "scalars", "eval_loss")[120] = 3.25;
    testing::write_series(here ? dir() : other(), tables);
  }
  const Session session = both();
  const SeriesDifference* metric = series_of(*session.comparison(), "eval_loss");
  ASSERT_NE(metric, nullptr);
  EXPECT_EQ(metric->at, 120.0) << "a number against another is one";
  std::vector<SeriesTable> tables = testing::fixture_history();
  testing::column_of(tables, "scalars", "loss")[50] = std::nan("");
  testing::write_series(other(), tables);
  EXPECT_EQ(series_of(*both().comparison(), "loss")->at, 50.0) << "and so is a loss that is NaN";
}

TEST_F(SeriesOfBoth, SeriesOfOneRunAloneAreNamed) {
  std::vector<SeriesTable> tables = timed(132, 2000);
  add_column(tables, "qk_logit", [](std::size_t r) { return static_cast<double>(r); });
  add_column(tables, "never_logged", [](std::size_t) { return std::nan(""); });
  add_column(tables, "measured", [](std::size_t) { return 1.0; });
  add_column(tables, "qk_clipped", [](std::size_t) { return 0.0; });
  testing::write_series(other(), tables);
  Session session = both();
  EXPECT_EQ(session.comparison()->only_lines(),
            std::vector<std::string>{"only in other: qk_logit, qk_clipped"});
  EXPECT_TRUE(says(panel_text(session, Panel::runs), "only in other: qk_logit, qk_clipped\n"));
  EXPECT_TRUE(says(*panel_csv(session, Panel::runs), "series,qk_clipped,-,on record\n"));
}

TEST_F(SeriesOfBoth, RowsOfAStepStandInTheirOrder) {
  std::vector<SeriesTable> here = timed(132, 1000), there = timed(132, 2000);
  repeat(there, 100);
  testing::column_of(there, "scalars", "loss")[100] = std::nan("");
  for (auto* tables : {&here, &there}) repeat(*tables, 60);
  testing::column_of(here, "scalars", "loss")[60] = 7;
  testing::column_of(there, "scalars", "loss")[60] = 7;
  testing::write_series(dir(), here);
  testing::write_series(other(), there);
  Session session = both();
  const SeriesDifference& loss = session.comparison()->pairs[0].series[0];
  EXPECT_EQ(loss.steps, 132U) << "each step once";
  EXPECT_EQ(loss.at, 100.0);
  EXPECT_TRUE(std::isnan(loss.there));
  const std::string csv = *panel_csv(session, Panel::timeline);
  std::map<std::string, std::vector<std::string>> lines;  // by step
  for (std::size_t at = 0, end = 0; (end = csv.find('\n', at)) != std::string::npos; at = end + 1)
    lines[csv.substr(at, csv.find(',', at) - at)].push_back(csv.substr(at, end - at));
  const History& other_history = session.others()[0]->history();
  const auto [first, last] = other_history.rows_at(100);
  ASSERT_EQ(last - first, 2U);
  const std::string good = exact_number((*other_history.scalar("loss"))[first + 1]);
  ASSERT_EQ(lines["100"].size(), 2U);
  EXPECT_FALSE(lines["100"][0].starts_with("100,,")) << lines["100"][0];
  EXPECT_TRUE(says(lines["100"][0], ",nan,1,")) << "of the other: " << lines["100"][0];
  EXPECT_TRUE(lines["100"][1].starts_with("100,,")) << lines["100"][1];
  EXPECT_TRUE(says(lines["100"][1], "," + good + ",")) << lines["100"][1];
  ASSERT_EQ(lines["60"].size(), 2U);
  EXPECT_TRUE(lines["60"][0].starts_with("60,7,") && says(lines["60"][0].substr(5), ",7,")) << lines["60"][0];
  EXPECT_FALSE(says(lines["60"][1], ",7,")) << lines["60"][1];
  EXPECT_EQ(lines["61"].size(), 1U);
  EXPECT_EQ(values_at(other_history, *other_history.scalar("loss"), 100),
            "NaN, then " + short_number((*other_history.scalar("loss"))[first + 1]));
  EXPECT_EQ(values_at(other_history, *other_history.scalar("loss"), 100.5), "");
}

}  // namespace
}  // namespace nanquest::viewer
