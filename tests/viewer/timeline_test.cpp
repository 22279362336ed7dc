// The timeline: what happened when, and the numbers of the whole run.
#include "viewer/model/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "tests/viewer/story.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

using Lane = TimelineEvent::Lane;

class Timeline : public testing::Story {
 protected:
  void write(testing::FixtureOptions options = {}) { testing::write_run(dir(), options); }
  static std::vector<double> steps_of(const Session& session, Lane lane) {
    std::vector<double> out;
    for (const TimelineEvent& e : timeline_events(session))
      if (e.lane == lane) out.push_back(e.step);
    return out;
  }
};

std::vector<std::string> names(const std::vector<TimelineCurve>& curves) {
  std::vector<std::string> out;
  for (const TimelineCurve& curve : curves) out.push_back(curve.name);
  return out;
}

TEST_F(Timeline, LanesHoldWhatTheRunKnows) {
  write({.incidents = 2});
  const Session session = open(dir());
  EXPECT_EQ(steps_of(session, Lane::incident), (std::vector<double>{90, 131}));
  EXPECT_EQ(steps_of(session, Lane::failed), (std::vector<double>{90, 131}));
  EXPECT_EQ(steps_of(session, Lane::spike), (std::vector<double>{124}));
  for (const TimelineEvent& e : timeline_events(session)) {
    if (e.incident < 0) continue;
    EXPECT_EQ(session.incidents()[static_cast<std::size_t>(e.incident)].files.step,
              static_cast<std::int64_t>(e.step));
  }
}

/// A run that is stopped by an incident writes no row of that step.
TEST_F(Timeline, AnIncidentBehindTheLastRowIsInTheRange) {
  write({.incidents = 2});
  testing::write_series(dir(), testing::fixture_history(100));
  EXPECT_EQ(open(dir()).steps_shown(), (std::pair{0.0, 131.0}));
}

/// Thousands of spikes were one solid bar; ranks that failed at one step are one mark.
TEST(Crowds, EventsThatWouldCoverEachOtherAreCounted) {
  std::vector<TimelineEvent> events;
  for (const double step : {10.0, 10.0, 50.0, 51.0, 52.0, 58.0, 90.0})
    events.push_back({Lane::spike, step, step == 51 ? Gate::non_finite : Gate::spike, -1, ""});
  events.push_back({Lane::failed, 51, Gate::scale_overflow, -1, ""});
  const auto pixel = [](double step) { return static_cast<float>(step); };
  const std::vector<Crowd> crowds = crowds_of(events, Lane::spike, pixel, 5);
  ASSERT_EQ(crowds.size(), 4u);
  EXPECT_EQ(crowds[0].count, 1u) << "one step";
  EXPECT_EQ(crowds[1].count, 3u);
  EXPECT_EQ(crowds[1].x, 51);
  EXPECT_EQ(crowds[1].gate, Gate::non_finite) << "the worst";
  EXPECT_EQ(crowds[2].count, 1u);
  EXPECT_EQ(crowds[3].x, 90);
  EXPECT_TRUE(crowds_of(events, Lane::incident, pixel, 5).empty());
}

TEST_F(Timeline, AnIncidentWithoutItsFileIsThere) {
  write({.incidents = 2});
  std::filesystem::remove_all(dir() + "/incidents");
  EXPECT_EQ(steps_of(open(dir()), Lane::incident), (std::vector<double>{90, 131}));
}

TEST_F(Timeline, CurvesHoldEveryFiniteValueAndNoColumnThatNobodyFilled) {
  SeriesTable table{
      "scalars", {"step", "loss", "scale", "lr", "grad_norm", "gate", "seconds", "accuracy", "unused"}, {}};
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 50; ++i)
    table.values.insert(table.values.end(), {i * 1.0, i == 7 ? inf : 3.0 - i, 1024, 0.1,
                                             i == 9 ? nan : 1.0 + i, 0, 0.2, 0.5, nan});
  const History history({table});
  const auto curves = timeline_curves(history);
  EXPECT_EQ(names(curves), (std::vector<std::string>{"loss", "grad_norm", "scale", "lr", "accuracy"}));
  for (const TimelineCurve& curve : curves) {
    const Extremes all = curve.values->query(0, history.rows());
    EXPECT_LT(curve.low, all.min) << curve.name;
    EXPECT_GT(curve.high, all.max) << curve.name;
    EXPECT_TRUE(!curve.logarithmic || curve.low > 0) << curve.name;
  }
  EXPECT_FALSE(curves[0].logarithmic) << "a loss may be below zero";
  EXPECT_TRUE(curves[1].logarithmic);
}

TEST_F(Timeline, ARateThatNobodyGaveIsNoCurve) {
  for (const double rate : {0.0, 1e-3}) {
    SeriesTable table{"scalars", {"step", "loss", "lr", "grad_norm"}, {}};
    for (int i = 0; i < 5; ++i) table.values.insert(table.values.end(), {i * 1.0, 2.0, i * rate, 0});
    const History history({table});
    EXPECT_EQ(names(timeline_curves(history)),
              rate > 0 ? std::vector<std::string>({"loss", "lr"}) : std::vector<std::string>({"loss"}));
  }
}

TEST_F(Timeline, ALossThatIsNeverFiniteIsACurveOfMarks) {
  SeriesTable table{"scalars", {"step", "loss"}, {}};
  for (int i = 0; i < 5; ++i) table.values.insert(table.values.end(), {i * 1.0, std::nan("")});
  const History history({table});
  const auto curves = timeline_curves(history);
  ASSERT_EQ(names(curves), std::vector<std::string>{"loss"});
  EXPECT_LT(curves[0].low, curves[0].high);
}

TEST_F(Timeline, TextAndCsvHoldTheSameEvents) {
  write({.incidents = 2});
  Session session = open(dir());
  const std::string text = panel_text(session, Panel::timeline);
  const std::string csv = *panel_csv(session, Panel::timeline);
  for (const TimelineEvent& e : timeline_events(session)) {
    EXPECT_TRUE(says(text, "step " + std::to_string(static_cast<int>(e.step)) + ": " + e.what)) << e.what;
    std::istringstream lines(csv);
    bool found = false;
    for (std::string line; std::getline(lines, line);)
      found =
          found || (line.rfind(std::to_string(static_cast<int>(e.step)) + ",", 0) == 0 && says(line, e.what));
    EXPECT_TRUE(found) << e.what;
  }
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 133);
}

TEST_F(Timeline, IncidentsAreListedWithoutASeries) {
  write({.series = false, .incidents = 2});
  std::filesystem::remove_all(dir() + "/incidents");
  Session session = open(dir());
  ASSERT_TRUE(session.history().empty());
  EXPECT_TRUE(says(panel_text(session, Panel::timeline), "No series"));
  EXPECT_TRUE(says(panel_text(session, Panel::timeline), "step 131"));
  EXPECT_TRUE(says(*panel_csv(session, Panel::timeline), "\n131,"));
}

TEST_F(Timeline, ManyEventsAreCountedInTheText) {
  auto tables = testing::fixture_history(131);
  auto gates = testing::column_of(tables, "scalars", "gate");
  for (std::size_t r = 0; r < 131; ++r) gates[r] = 1;
  std::filesystem::create_directories(dir());
  testing::write_series(dir(), tables);
  Session session = open(dir());
  EXPECT_TRUE(says(panel_text(session, Panel::timeline), "and 91 more"));
}

TEST(MeasuredSpan, SaysStepsAndWhatChanged) {
  const History history({{"scalars",
                          {"step", "loss", "scale"},
                          {0, 5, 1024, 10, 4, 1024, 20, std::nan(""), 512, 40, 2.5, 256}}});
  const std::vector<TimelineCurve> curves = timeline_curves(history);
  const auto text = [&](const char* name, double from, double to) {
    const auto curve = std::ranges::find(curves, name, &TimelineCurve::name);
    return measure_text(*curve, {name, from, to});
  };
  EXPECT_EQ(text("loss", 1, 9), "10 steps (0 to 10): Loss 5 to 4, -1");
  EXPECT_EQ(text("loss", 10, 1), "10 steps (10 to 0): Loss 4 to 5, +1");
  EXPECT_EQ(text("loss", 0, 40), "40 steps (0 to 40): Loss 5 to 2.5, -2.5; 1 NaN among them");
  EXPECT_EQ(text("loss", 0, 20), "20 steps (0 to 20): Loss 5 to NaN; 1 NaN among them");
  EXPECT_EQ(text("scale", 0, 40), "40 steps (0 to 40): Loss scale 1024 to 256, -768, x 0.25");
  const History none;
  TimelineCurve empty = curves[0];
  empty.history = &none;
  EXPECT_EQ(measure_text(empty, {"loss", 0, 1}), "");
}

}  // namespace
}  // namespace nanquest::viewer
