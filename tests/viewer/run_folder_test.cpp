// A folder of runs: what its list says of each, its order, what is found in it, and what can't be asked of
// it.
#include "viewer/model/run_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/viewer/story.h"
#include "viewer/model/kept.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

class OfRuns : public testing::Story {
 protected:
  std::string folder() const { return temp_.path() + "/night"; }
  /// A run of the folder, written `minutes` ago.
  std::string add(const std::string& name, int minutes, const testing::FixtureOptions& options = {}) {
    const std::string run = folder() + "/" + name;
    testing::write_run(run, options);
    written(run, minutes);
    return run;
  }
  static void written(const std::string& run, int minutes) {
    const auto when = fs::file_time_type::clock::now() - std::chrono::minutes(minutes);
    for (const std::string& path : {manifest_path(run), series_path(run, 0)})
      if (fs::exists(path)) fs::last_write_time(path, when);
  }
  void make() {
    add("run-10", 30);
    add("run-9", 90, {.replayed = false});
    const std::string healthy = add("deep/healthy", 200);
    fs::remove_all(incidents_dir(healthy));
    Manifest manifest = *read_manifest(healthy);
    manifest.incidents.clear();
    manifest.status = "finished";
    manifest.command = "python train.py --lr 3e-4";
    manifest.findings = {{16, 0, "nothing_learned", "NO_GRADIENT", "head.weight", "", "no gradient"}};
    ASSERT_TRUE(write_manifest(healthy, manifest));
    testing::write_series(healthy, testing::fixture_history(80));
    written(healthy, 200);
    fs::create_directories(folder() + "/notes");
    std::ofstream(folder() + "/notes/readme.txt") << "no run";
  }
  static std::vector<std::string> names(const RunFolder& folder, const std::vector<std::size_t>& rows) {
    std::vector<std::string> out;
    for (const std::size_t row : rows) out.push_back(folder.runs[row].name);
    return out;
  }
  using Names = std::vector<std::string>;
};

TEST_F(OfRuns, EachLineSaysWhatBecameOfTheRun) {
  make();
  Session session = open(folder());
  ASSERT_NE(session.folder(), nullptr);
  const RunFolder& found = *session.folder();
  ASSERT_EQ(found.runs.size(), 3u);
  const RunLine &replayed = found.runs[0], &fresh = found.runs[1], &healthy = found.runs[2];
  EXPECT_EQ(replayed.name, "run-10") << "the last written first";
  EXPECT_EQ(replayed.cause, "FP16_OVERFLOW");
  EXPECT_EQ(replayed.incidents, 1u);
  EXPECT_EQ(replayed.last_step, 131);
  EXPECT_EQ(fresh.cause, "not replayed yet");
  EXPECT_EQ(healthy.name, "deep/healthy");
  EXPECT_EQ(healthy.cause, "NO_GRADIENT") << "of its finding";
  EXPECT_EQ(healthy.incidents, 0u);
  EXPECT_EQ(healthy.last_step, 79);
  const std::string text = panel_text(session, Panel::runs);
  EXPECT_EQ(text.find("3 runs in night\n"), 0u) << text;
  EXPECT_TRUE(says(text, "python train.py --lr 3e-4") && says(text, "90 minutes")) << text;
  EXPECT_TRUE(says(*panel_csv(session, Panel::runs), "\ndeep/healthy,NO_GRADIENT,0,79,2")) << "and a time";
}

TEST_F(OfRuns, TheyAreSortedAndSearched) {
  make();
  const RunFolder found = *read_run_folder(folder());
  const auto sorted = [&](RunColumn by, bool down) { return names(found, found.rows("", by, down)); };
  EXPECT_EQ(sorted(RunColumn::name, false), (Names{"deep/healthy", "run-9", "run-10"})) << "numbers by value";
  EXPECT_EQ(sorted(RunColumn::name, true), (Names{"run-10", "run-9", "deep/healthy"}));
  EXPECT_EQ(sorted(RunColumn::age, false), (Names{"run-10", "run-9", "deep/healthy"}));
  EXPECT_EQ(sorted(RunColumn::steps, false).front(), "deep/healthy");
  EXPECT_EQ(sorted(RunColumn::cause, false), (Names{"run-10", "deep/healthy", "run-9"}));
  EXPECT_EQ(sorted(RunColumn::incidents, true), (Names{"run-10", "run-9", "deep/healthy"}));
  EXPECT_EQ(names(found, found.rows("lr 3e-4", RunColumn::age, false)), Names{"deep/healthy"});
  EXPECT_EQ(names(found, found.rows("RUN- overflow", RunColumn::age, false)), Names{"run-10"});
  EXPECT_TRUE(found.rows("nonsense", RunColumn::age, false).empty());
}

TEST_F(OfRuns, ARunThatCantBeReadIsInTheListAllTheSame) {
  make();
  std::ofstream(manifest_path(folder() + "/run-9")) << "{\"format\":";
  std::ofstream(series_path(folder() + "/run-9", 0)) << "cut";
  const RunFolder found = *read_run_folder(folder());
  ASSERT_EQ(found.runs.size(), 3u);
  const RunLine& bad = found.runs[found.rows("run-9", RunColumn::name, false).at(0)];
  EXPECT_EQ(bad.state, "unknown");
  EXPECT_TRUE(says(bad.outcome, "manifest.json")) << bad.outcome;
  EXPECT_FALSE(bad.last_step);
  EXPECT_EQ(bad.incidents, 1u) << "its snapshot is there";
}

/// Killed, it never wrote that it ended: the list says what the run's own page says.
TEST_F(OfRuns, ARunThatWroteNothingForLongIsNotCalledRunning) {
  make();
  Manifest manifest = *read_manifest(folder() + "/run-9");
  manifest.status = "running";
  ASSERT_TRUE(write_manifest(folder() + "/run-9", manifest));
  written(folder() + "/run-9", 90);
  const Session run = open(folder() + "/run-9");
  const RunFolder found = *read_run_folder(folder());
  const auto cells = cells_of(found.runs[found.rows("run-9", RunColumn::name, false).at(0)]);
  EXPECT_EQ(cells[static_cast<std::size_t>(RunColumn::state)],
            "running, says the manifest, but nothing was written for 90 minutes");
  EXPECT_EQ(cells[static_cast<std::size_t>(RunColumn::state)], run.status());
}

TEST_F(OfRuns, WhatIsNoFolderOfRunsKeepsItsOwnError) {
  fs::create_directories(folder() + "/empty/deep/deeper");
  const Result<Session> none = Session::open(folder());
  ASSERT_FALSE(none);
  EXPECT_TRUE(says(none.error().message, "holds no manifest, series or incidents"));
  testing::write_run(folder() + "/a/b/c");
  EXPECT_FALSE(Session::open(folder())) << "too deep";
  EXPECT_TRUE(Session::open(folder() + "/a"));
}

TEST_F(OfRuns, ANewRunAppears) {
  make();
  Session session = open(folder());
  EXPECT_FALSE(session.poll());
  add("run-11", 0);
  EXPECT_TRUE(session.poll());
  EXPECT_EQ(session.folder()->runs.size(), 4u);
  EXPECT_EQ(session.folder()->runs[0].name, "run-11");
}

TEST_F(OfRuns, NothingIsWrittenIntoItsRunsNorComparedWithIt) {
  make();
  Session session = open(folder());
  EXPECT_TRUE(may_write(session, folder() + "/list.png"));
  EXPECT_FALSE(may_write(session, folder() + "/run-9/list.png"));
  Session run = open(folder() + "/run-9");
  const Status compared = run.compare_with({folder()});
  ASSERT_FALSE(compared);
  EXPECT_TRUE(says(compared.error().message, "is a folder of runs"));
  EXPECT_TRUE(run.others().empty());
  EXPECT_EQ(folder_above(run), folder());
  EXPECT_EQ(folder_above(session), temp_.path());
}

}  // namespace
}  // namespace nanquest::viewer
