// Plots and tables without a backend: what is drawn keeps its place and size.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/writer.h"
#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/ui/curves.h"
#include "viewer/ui/marks.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;
using testing::norms_of;

class Plots : public testing::Story {
 protected:
  /// Square pixels of the heat map that are NaN, when the rows are of these steps and those of `bad` are NaN.
  double bad_area(const std::vector<int>& steps, std::size_t bad) {
    std::vector<SeriesTable> tables = {{"scalars", {"step"}, {}}, {"grad_norm", {"a", "b", "c"}, {}}};
    for (std::size_t r = 0; r < steps.size(); ++r) {
      const double v = r == bad ? std::nan("") : 1 + 0.1 * std::sin(static_cast<double>(r));
      tables[0].values.push_back(steps[r]);
      tables[1].values.insert(tables[1].values.end(), {v, v, v});
    }
    testing::write_series(dir(), tables);
    Session session = open(dir());
    Driver driver(session, Panel::norms);
    norms_of(driver).plots = NormsPanel::heat_map;
    driver.frame(5);
    return driver.area(mark_colour(Mark::nan));
  }
  /// A snapshot of one tensor, all of it `value`.
  void write_tensor(std::int64_t step, std::int64_t count, float value) {
    SnapshotDoc doc = testing::fixture_doc();
    doc.step = step;
    for (Slot& slot : doc.slots) slot.data.clear();
    std::filesystem::create_directories(incidents_dir(dir()));
    Result<SnapshotWriter> writer = SnapshotWriter::create(incident_path(dir(), step, 0));
    ASSERT_TRUE(writer);
    const std::vector<float> values(static_cast<std::size_t>(count), value);
    const std::vector<std::int64_t> shape = {count};
    ASSERT_TRUE(writer->write_tensor("parameters/w", {DType::float32, shape, values.data()}));
    ASSERT_TRUE(writer->write_doc(doc));
    ASSERT_TRUE(writer->commit());
  }
};

std::vector<int> steps(std::vector<std::pair<int, int>> ranges) {
  std::vector<int> out;
  for (const auto& [first, last] : ranges)
    for (int step = first; step <= last; ++step) out.push_back(step);
  return out;
}

TEST_F(Plots, NoLineRunsAcrossStepsThatWereNotRecorded) {
  SeriesTable scalars{"scalars", {"step", "loss"}, {}};
  for (const int step : steps({{0, 9}, {40, 49}, {51, 60}}))
    scalars.values.insert(scalars.values.end(), {1.0 * step, 2.0});
  const History history({scalars});
  for (const float pixels : {1000.0f, 12.0f}) {
    const std::vector<Curve> runs =
        finite_runs(history, *history.scalar("loss"), 0, history.rows(), 0, pixels);
    ASSERT_EQ(runs.size(), 3u) << pixels;
    EXPECT_LE(runs[0].x.back(), 9) << pixels;
    EXPECT_EQ(runs[1].x.front(), 40) << pixels;
  }
}

constexpr double kMap = 1100.0 * 700;  // about what the map has of a 1280 x 800 window

TEST_F(Plots, ABadStepBeforeAGapDoesNotFillIt) {
  const double bad = bad_area(steps({{0, 50}, {1000, 1050}}), 50);
  EXPECT_LT(bad, 0.01 * kMap) << "949 steps that nobody recorded";
  EXPECT_GT(bad, 100) << "and is seen";
}

TEST_F(Plots, ABadStepAfterWhichTheRunWentBackCoversNoneOfTheOthers) {
  const double bad = bad_area(steps({{0, 100}, {60, 160}}), 100);
  EXPECT_LT(bad, 1.5 / 160 * kMap);
  EXPECT_GT(bad, 100);
}

TEST_F(Plots, EveryTenthStepFillsTheMap) {
  std::vector<int> sparse;
  for (int step = 0; step < 1000; step += 10) sparse.push_back(step);
  const double bad = bad_area(sparse, 50);
  EXPECT_GT(bad, 0.5 / 100 * kMap) << "a row stands for the steps up to the next";
  EXPECT_LT(bad, 2.0 / 100 * kMap);
}

TEST_F(Plots, TheBarsOfAnotherIncidentsTensorStayInThePlot) {
  write_tensor(10, 16, 1.0f);
  write_tensor(20, 40000, 1e-30f);
  Session session = open(dir());
  ASSERT_EQ(session.incident()->doc.step, 10);
  session.select_tensor("parameters/w");
  Driver driver(session, Panel::tensor);
  driver.frame(4);
  session.select_step(20);
  session.select_tensor("parameters/w");
  driver.frame(4);
  EXPECT_LT(Driver::shown(ImAxis_X1, true).Min, -100) << "2^-100 is shown";
  EXPECT_GT(Driver::shown(ImAxis_Y1, true).Max, 40000);
}

/// Pixels of the first column of the table whose label begins so.
float first_column(const char* table) {
  ImGuiContext& g = *ImGui::GetCurrentContext();
  for (int i = 0; i < g.Tables.GetBufSize(); ++i)
    if (const ImGuiTable* t = g.Tables.TryGetMapData(i);
        t != nullptr && t->OuterWindow != nullptr && std::string(ImGui::TableGetColumnName(t, 0)) == table)
      return t->Columns[0].WorkMaxX - t->Columns[0].WorkMinX;
  return 0;
}

TEST_F(Plots, NumbersOfOpsAndStepsAreWhole) {
  SnapshotDoc doc = testing::fixture_doc();
  doc.step = 12345678;
  for (Slot& slot : doc.slots) slot.data.clear();
  OpRow empty;
  empty.name = "aten::empty";
  doc.ops.resize(123456, empty);
  std::filesystem::create_directories(incidents_dir(dir()));
  Result<SnapshotWriter> writer = SnapshotWriter::create(incident_path(dir(), doc.step, 0));
  ASSERT_TRUE(writer && writer->write_doc(doc) && writer->commit());
  std::filesystem::copy_file(incident_path(dir(), doc.step, 0),
                             incidents_dir(dir()) + "/step-12345678.r0.2.h5");
  Session session = open(dir());
  session.select_op(123455);
  for (const auto& [panel, column, widest] :
       {std::tuple{Panel::trace, "Op", "123455"}, std::tuple{Panel::runs, "Step", "12345678 (2)"}}) {
    Driver driver(session, panel);
    driver.frame(4);
    EXPECT_GE(first_column(column), ImGui::CalcTextSize(widest).x) << column;
  }
}

}  // namespace
}  // namespace nanquest::viewer
