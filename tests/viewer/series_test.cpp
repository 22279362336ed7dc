// What the viewer shows of a run from its series: of every rank, of weights as well as of the gate, in the
// order of the steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "probe/snapshot/manifest.h"
#include "probe/snapshot/run_dir.h"
#include "tests/viewer/story.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;
using testing::column_of;

class Series : public testing::Story {
 protected:
  Session open() { return Story::open(dir()); }
  std::string headline() { return verdict_page(open()).headline; }
};

TEST_F(Series, OfAnotherRankIsHeardToo) {
  testing::write_series(dir(), testing::fixture_history(80));
  EXPECT_EQ(headline(), "No incident: steps 0 to 79 were finite");
  std::vector<SeriesTable> bad = testing::fixture_history(80);
  column_of(bad, "scalars", "gate")[40] = static_cast<double>(Gate::non_finite);
  testing::write_series(dir(), bad, 1);
  const std::string text = headline();
  EXPECT_FALSE(says(text, "No incident:")) << text;
  EXPECT_TRUE(says(text, "Step 40") && says(text, "rank 1")) << text;
}

TEST_F(Series, OfARankThatCannotBeReadKeepsFiniteFromBeingSaid) {
  testing::write_series(dir(), testing::fixture_history(80));
  testing::write_series(dir(), testing::fixture_history(80), 1);
  EXPECT_EQ(headline(), "No incident: steps 0 to 79 were finite on 2 ranks");
  fs::resize_file(series_path(dir(), 1), 900);
  const std::string text = headline();
  EXPECT_FALSE(says(text, "No incident:")) << text;
  EXPECT_TRUE(says(text, series_path(dir(), 1))) << text;
}

TEST_F(Series, WeightsThatAreNotFiniteAreSaidWhateverTheGateSays) {
  for (const char* table : {"weight_norm", "grad_norm", "grad_amax"}) {
    std::vector<SeriesTable> tables = testing::fixture_history(80);
    column_of(tables, table, "head")[50] = std::nan("");
    testing::write_series(dir(), tables);
    const std::string text = headline();
    EXPECT_TRUE(says(text, "Step 50") && says(text, "head")) << table << ": " << text;
  }
}

TEST_F(Series, IsHeardInTheListOfIncidentsWhereThatIsEmpty) {
  const auto runs = [&] {
    Session session = open();
    return panel_text(session, Panel::runs);
  };
  testing::write_series(dir(), testing::fixture_history(140));
  EXPECT_TRUE(says(runs(), "Step 131 was not finite")) << runs();
  EXPECT_FALSE(says(runs(), "no incidents") || says(runs(), "No incident:")) << runs();
  testing::write_series(dir(), testing::fixture_history(80));
  EXPECT_TRUE(says(runs(), "No incident: steps 0 to 79 were finite")) << runs();
}

TEST_F(Series, GradientsOfAnOverflowOfTheLossScaleAreNoBadStep) {
  testing::write_series(dir(), testing::fixture_history(100));
  EXPECT_EQ(headline(), "No incident: steps 0 to 99 were finite, but for 1 overflow of the loss scale");
}

TEST_F(Series, RowsAreShownInTheOrderOfTheirSteps) {
  std::vector<SeriesTable> tables = {{"scalars", {"step", "loss"}, {}}, {"grad_norm", {"a"}, {}}};
  for (const int step : {0, 1, 2, 3, 4, 2, 3, 4, 5}) {
    tables[0].values.insert(tables[0].values.end(), {double(step), 1.0});
    tables[1].values.push_back(10.0 * step);
  }
  testing::write_series(dir(), tables);
  const Session session = open();
  const std::vector<double>& steps = session.history().steps();
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  ASSERT_EQ(steps.size(), 9u) << "none is dropped";
  for (std::size_t r = 0; r < steps.size(); ++r)
    EXPECT_EQ(session.history().series(Statistic::gradient, 0)[r], 10 * steps[r]);
}

TEST_F(Series, ARunThatIsCalledRunningSaysWhenItLastWrote) {
  testing::write_run(dir());
  Manifest manifest = *read_manifest(dir());
  manifest.status = "running";
  manifest.outcome = "";
  ASSERT_TRUE(write_manifest(dir(), manifest));
  EXPECT_EQ(open().status(), "running");
  for (const auto& entry : fs::recursive_directory_iterator(dir()))
    fs::last_write_time(entry, fs::file_time_type::clock::now() - std::chrono::hours(3));
  const std::string status = open().status();
  EXPECT_TRUE(says(status, "nothing was written for 3 hours")) << status;
}

TEST_F(Series, OfTheIncidentsRankIsShown) {
  const std::string snapshot = testing::write_run(dir());
  for (const char* ending : {".h5", ".json"})
    fs::rename(snapshot.substr(0, snapshot.size() - 3) + ending,
               incident_path(dir(), 131, 1).substr(0, incident_path(dir(), 131, 1).size() - 3) + ending);
  fs::remove(manifest_path(dir()));
  testing::write_series(dir(), testing::fixture_history(140), 1);
  const Session session = open();
  EXPECT_EQ(session.entry()->files.rank, 1);
  EXPECT_EQ(session.history().rows(), 140u);
}

}  // namespace
}  // namespace nanquest::viewer
