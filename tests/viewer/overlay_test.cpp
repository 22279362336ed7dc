// Several runs beside the open one, and smoothed curves: what differs, in tables, in text and in CSV.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "tests/viewer/comparing.h"
#include "viewer/model/comparison.h"
#include "viewer/model/numbers.h"
#include "viewer/model/smoothing.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

using Cells = std::vector<std::string>;

class Overlay : public testing::Comparing {
 protected:
  /// A third run, without the column of the loss scale and without a manifest's setting "steps".
  std::string third() {
    const std::string run = temp_.path() + "/third";
    testing::write_run(run, {.replayed = false, .incidents = 1});
    std::vector<SeriesTable> tables = testing::fixture_history(100);
    for (std::string& column : tables[0].columns)
      if (column == "scale") column = "temperature";
    testing::column_of(tables, "scalars", "loss")[20] += 1;
    testing::write_series(run, tables);
    Manifest manifest = *read_manifest(run);
    manifest.config = {{"lr", "0.006"}};
    EXPECT_TRUE(write_manifest(run, manifest));
    return run;
  }
  Session all() {
    Session session = open(dir());
    EXPECT_TRUE(session.compare_with({other(), third()}));
    return session;
  }
};

TEST_F(Overlay, SettingsAreATableOfAllRuns) {
  Session session = all();
  const Comparison& c = *session.comparison();
  EXPECT_EQ(c.runs, (Cells{"story", "other", "third"}));
  std::map<std::string, Cells> settings;
  for (const Difference& d : c.settings) settings[d.what] = d.values;
  EXPECT_EQ(settings["lr"], (Cells{"0.006", "0.003", "0.006"}));
  EXPECT_EQ(settings["seed"], (Cells{"7", "-", "-"}));
  EXPECT_EQ(settings["steps"], (Cells{"200", "200", "-"}));
  EXPECT_EQ(settings.count("command"), 0U) << "it is the same in all";
  EXPECT_EQ(c.headline(), "story beside other and third");
  ASSERT_EQ(c.sentences().size(), 2U);
  EXPECT_TRUE(says(c.sentences()[1], "story and third differ from step 20 on: loss ")) << c.sentences()[1];
  const std::string text = panel_text(session, Panel::runs), csv = *panel_csv(session, Panel::runs);
  for (const char* part : {"Settings that differ", "First step that differs from story", "Incidents of all",
                           "only in third, not in story: temperature"})
    EXPECT_TRUE(says(text, part)) << part << " in\n" << text;
  EXPECT_TRUE(csv.starts_with("kind,what,story,other,third\n")) << csv;
  EXPECT_TRUE(says(csv, "setting,lr,0.006,0.003,0.006\n")) << csv;
  EXPECT_TRUE(says(csv, "\nseries,first difference of loss (step 20),")) << csv;
  EXPECT_TRUE(says(csv, "\nseries,temperature,-,,on record\n")) << csv;
}

TEST_F(Overlay, EveryRunHasItsCurve) {
  Session session = all();
  const std::vector<TimelineCurve> curves = timeline_curves(session);
  const auto runs = [&](const char* name) {
    std::vector<std::size_t> of;
    for (const TimelineCurve& curve : curves)
      if (curve.name == name)
        for (const RunCurve& other : curve.beside) of.push_back(other.run);
    return of;
  };
  EXPECT_EQ(runs("loss"), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(runs("scale"), (std::vector<std::size_t>{1})) << "the third has none";
  const std::string text = panel_text(session, Panel::timeline), csv = *panel_csv(session, Panel::timeline);
  for (const char* part : {"series of other", "series of third"}) EXPECT_TRUE(says(text, part)) << text;
  const std::string head = csv.substr(0, csv.find('\n'));
  for (const char* column : {"loss of other", "loss of third", "scale of other"})
    EXPECT_TRUE(says(head, column)) << head;
  EXPECT_FALSE(says(head, "scale of third")) << head;
  session.select_layer("head");
  EXPECT_EQ(layer_beside(session, Statistic::gradient).size(), 2U);
  EXPECT_TRUE(says(panel_text(session, Panel::norms), "head in the runs"));
  EXPECT_TRUE(says(*panel_csv(session, Panel::norms), "grad_norm:head of third"));
}

TEST_F(Overlay, TooManyRunsAreRefusedAndThePresentOnesStay) {
  Session session = both();
  const Status status = session.compare_with(std::vector<std::string>(kMostRuns, other()));
  ASSERT_FALSE(status);
  EXPECT_TRUE(says(status.error().text(), "13 runs are too many")) << status.error().text();
  EXPECT_EQ(session.others().size(), 1U);
  ASSERT_TRUE(session.compare_with(std::vector<std::string>(kMostRuns - 1, other())));
  std::vector<std::string> names = session.comparison()->runs;
  std::ranges::sort(names);
  EXPECT_TRUE(std::ranges::adjacent_find(names) == names.end()) << "no two have the same name";
}

/// As it is defined: the mean of all values so far, a weight to the power of their age.
double average(const Pyramid& values, std::size_t row, double weight) {
  double sum = 0, all = 0, factor = 1;
  for (std::size_t i = row + 1; i-- > 0;) {
    if (!std::isfinite(values[i])) continue;
    sum += factor * values[i];
    all += factor;
    factor *= weight;
  }
  return sum / all;
}

TEST(Smoothing, IsTheExponentialMovingAverage) {
  std::vector<double> noisy;
  for (int i = 0; i < 300; ++i)
    noisy.push_back(i == 40 ? NAN : i == 41 ? INFINITY : std::sin(i * 1.7) + i * 0.01);
  const Pyramid values(noisy);
  for (const double weight : {0.0, 0.5, 0.9, 0.99, kMostSmoothing}) {
    const Pyramid smooth = smoothed(values, weight);
    ASSERT_EQ(smooth.size(), values.size());
    EXPECT_EQ(smooth[0], values[0]);
    EXPECT_TRUE(std::isnan(smooth[40]) && std::isinf(smooth[41])) << "they are still seen";
    for (std::size_t i = 0; i < noisy.size(); ++i) {
      if (i == 40 || i == 41) continue;
      EXPECT_NEAR(smooth[i], average(values, i, weight), 1e-9) << weight << ' ' << i;
    }
  }
  double weight = 0;
  for (int i = 0; i < 20; ++i) weight = smoothing_after(weight, 1);
  EXPECT_EQ(weight, kMostSmoothing);
  for (int i = 0; i < 20; ++i) weight = smoothing_after(weight, -1);
  EXPECT_EQ(weight, 0);
  EXPECT_EQ(smoothing_after(0.85, 1), 0.9);
  EXPECT_EQ(smoothing_after(0.85, -1), 0.8);
}

TEST_F(Overlay, SmoothedCurvesAreOfAllRunsAndSaid) {
  Session session = all();
  session.select_smoothing(0.9);
  const std::vector<TimelineCurve> curves = timeline_curves(session);
  const RunCurve& third = curves[0].beside[1];
  ASSERT_NE(third.smooth, nullptr);
  EXPECT_NEAR(third.shown()[50], average(*third.values, 50, 0.9), 1e-9);
  const std::string text = panel_text(session, Panel::timeline), csv = *panel_csv(session, Panel::timeline);
  EXPECT_TRUE(says(text, "exponential moving average, weight 0.9")) << text;
  EXPECT_TRUE(says(text, "series of third smoothed")) << text;
  // The cell of step 50 below "loss of third smoothed by 0.9".
  const auto cells = [](const std::string& line) {
    Cells out;
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) out.push_back(cell);
    return out;
  };
  const Cells head = cells(csv.substr(0, csv.find('\n')));
  const auto at = std::ranges::find(head, "loss of third smoothed by 0.9") - head.begin();
  ASSERT_LT(at, std::ssize(head)) << csv.substr(0, csv.find('\n'));
  const std::size_t line = csv.find("\n50,") + 1;
  EXPECT_EQ(cells(csv.substr(line, csv.find('\n', line) - line))[static_cast<std::size_t>(at)],
            exact_number(third.shown()[50]));
  session.select_smoothing(7);
  EXPECT_EQ(session.selection().smoothing, kMostSmoothing);
  session.select_smoothing(NAN);
  EXPECT_EQ(session.selection().smoothing, 0);
  EXPECT_FALSE(says(panel_text(session, Panel::timeline), "smoothed"));
}

}  // namespace
}  // namespace nanquest::viewer
