// What the viewer shows of incomplete and damaged runs: nothing reassuring, outdated or half true.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/series.h"
#include "probe/snapshot/writer.h"
#include "replay/verdict/json.h"
#include "tests/viewer/story.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

class Honest : public testing::Story {
 protected:
  std::string headline(const std::string& path) { return verdict_page(open(path)).headline; }
};

TEST_F(Honest, ARunWithoutItsIncidentFilesIsNotCalledFinite) {
  testing::write_run(dir());
  fs::remove_all(dir() + "/incidents");
  const std::string text = headline(dir());
  EXPECT_TRUE(says(text, "tep 131")) << text;
  EXPECT_TRUE(says(text, "not finite")) << text;
  EXPECT_FALSE(says(text, "every step")) << text;
}

TEST_F(Honest, FiniteIsSaidOfTheStepsThatTheSeriesHolds) {
  testing::write_series(dir(), testing::fixture_history(80));
  EXPECT_EQ(headline(dir()), "No incident: steps 0 to 79 were finite");
  std::vector<SeriesTable> lost = testing::fixture_history(80);
  lost[0].values[40 * lost[0].columns.size() + 1] = std::nan("");  // the loss, while the gate says ok
  testing::write_series(dir(), lost);
  EXPECT_TRUE(says(headline(dir()), "Step 40")) << headline(dir());
  testing::write_series(dir(), {{"scalars", {"step", "lr"}, {0, 0.1, 1, 0.1}}});
  EXPECT_TRUE(says(headline(dir()), "doesn't say whether")) << "nobody looked at the loss";
}

TEST_F(Honest, WithoutSeriesNothingIsSaidOfTheSteps) {
  testing::write_run(dir(), {.series = false});
  fs::remove_all(dir() + "/incidents");
  const std::string text = headline(dir());
  EXPECT_FALSE(says(text, "finite so far")) << text;
  EXPECT_TRUE(says(text, "Step 131")) << "the manifest names it: " << text;
  Manifest manifest = *read_manifest(dir());
  manifest.incidents.clear();
  ASSERT_TRUE(write_manifest(dir(), manifest));
  EXPECT_TRUE(says(headline(dir()), "no series")) << headline(dir());
}

TEST_F(Honest, ARunThatWasRenamedIsNotRunning) {
  testing::write_run(dir());
  Manifest manifest = *read_manifest(dir());
  manifest.status = "running";
  manifest.outcome = "";
  ASSERT_TRUE(write_manifest(dir(), manifest));
  Session session = open(dir());
  EXPECT_TRUE(says(panel_text(session, Panel::runs), "running"));
  fs::rename(dir(), dir() + ".old");
  EXPECT_TRUE(session.poll()) << "that it is gone is news";
  EXPECT_FALSE(session.poll()) << "but only once";
  const std::string text = panel_text(session, Panel::runs);
  EXPECT_FALSE(says(text, "running")) << text;
  EXPECT_TRUE(says(text, "gone")) << text;
  EXPECT_EQ(session.history().rows(), 132u) << "what was read is kept";
  EXPECT_FALSE(session.complaints().empty());
  fs::rename(dir() + ".old", dir());
  EXPECT_TRUE(session.poll());
  EXPECT_TRUE(says(panel_text(session, Panel::runs), "running"));
}

TEST_F(Honest, AGateFailureIsOpenedBeforeASilentIncident) {
  testing::write_run(dir(), {.incidents = 2});
  Manifest manifest = *read_manifest(dir());
  manifest.incidents[1].gate = "ok";
  ASSERT_TRUE(write_manifest(dir(), manifest));
  Verdict silent = *verdict_from_json(testing::fixture_verdict());
  silent.step = 90;
  silent.cause = Label::unknown;
  silent.confidence = 0.2;
  silent.culprit.value = BadValue::silent;
  const std::string early = incident_path(dir(), 90, 0);
  ASSERT_TRUE(write_file_atomically(verdict_path(early), to_json(silent)));
  const Session session = open(dir());
  ASSERT_NE(session.incident(), nullptr);
  EXPECT_EQ(session.incident()->doc.step, 131);
  // The same without a manifest: the verdict says that it is silent.
  fs::remove(manifest_path(dir()));
  EXPECT_EQ(open(dir()).incident()->doc.step, 131);
}

TEST_F(Honest, AnIntactVerdictIsShownWithoutItsSnapshot) {
  const std::string snapshot = testing::write_run(dir());
  fs::resize_file(snapshot, 100);
  Session session = open(dir());
  const VerdictPage page = verdict_page(session);
  EXPECT_EQ(page.state, VerdictPage::State::diagnosed);
  EXPECT_EQ(page.cause, Label::fp16_overflow);
  const std::string text = panel_text(session, Panel::verdict);
  EXPECT_TRUE(says(text, "step-00000131.r0.h5")) << "and says what can't be read\n" << text;
  for (const Panel panel : {Panel::norms, Panel::trace, Panel::tensor, Panel::runs})
    EXPECT_FALSE(panel_text(session, panel).empty());
}

TEST_F(Honest, AVerdictThatCannotBeReadIsNotCalledAMissingReplay) {
  testing::write_run(dir(), {.incidents = 2});
  const std::string broken = verdict_path(incident_path(dir(), 90, 0));
  std::ofstream(broken) << "{\"format\":";
  Session session = open(dir());
  ASSERT_EQ(session.incident()->doc.step, 131) << "another one is open";
  const std::string text = panel_text(session, Panel::runs);
  EXPECT_TRUE(says(text, "step 90, rank 0: its verdict can't be read")) << text;
  ASSERT_EQ(session.complaints().size(), 1u);
  EXPECT_TRUE(says(session.complaints()[0], broken)) << session.complaints()[0];
}

TEST_F(Honest, AReplayFileOpensTheSnapshotThatItBelongsTo) {
  const std::string snapshot = testing::write_run(dir(), {.watched = false});
  const Session session = open(replay_path(snapshot));
  ASSERT_NE(session.incident(), nullptr);
  EXPECT_EQ(session.incident()->reader.path(), snapshot);
  EXPECT_EQ(verdict_page(session).state, VerdictPage::State::diagnosed);
  fs::remove(snapshot);
  EXPECT_EQ(verdict_page(open(replay_path(snapshot))).state, VerdictPage::State::diagnosed)
      << "the verdict is left";
  fs::remove(verdict_path(snapshot));
  const Result<Session> alone = Session::open(replay_path(snapshot));
  ASSERT_FALSE(alone);
  EXPECT_TRUE(says(alone.error().text(), "what a replay left")) << alone.error().text();
}

TEST_F(Honest, AnotherIncidentBringsItsOwnLayer) {
  testing::write_run(dir(), {.incidents = 2});
  Session session = open(dir());
  ASSERT_EQ(session.selection().layer, "blocks.3.mlp.up");
  session.select_step(90);
  EXPECT_EQ(session.incident()->doc.step, 90);
  EXPECT_EQ(session.selection().layer, "") << "step 90 has no culprit";
}

TEST_F(Honest, ASampleIsNotACount) {
  const std::string snapshot = testing::write_run(dir());
  const auto samples = [&](std::vector<std::int64_t> poison) {
    Verdict v = *verdict_from_json(testing::fixture_verdict());
    v.poison = std::move(poison);
    v.batch = 8;
    std::ofstream(verdict_path(snapshot)) << to_json(v);
    for (const Fact& f : verdict_page(open(dir())).facts)
      if (f.label == "Samples") return f.text;
    return std::string();
  };
  EXPECT_EQ(samples({3}), "sample 3 of samples 0 to 7; without it the step is finite");
  EXPECT_EQ(samples({3, 5}), "samples 3 and 5 of samples 0 to 7; without them the step is finite");
}

TEST_F(Honest, TheReplayCommandWorksFromAnyFolder) {
  testing::write_run(dir(), {.replayed = false});
  const fs::path before = fs::current_path();
  fs::current_path(temp_.path());
  const std::string command = open("story").replay_command();
  fs::current_path(before);
  const std::string path = fs::canonical(incident_path(dir(), 131, 0)).string();
  EXPECT_EQ(command, "nanquest-replay " + path);
}

}  // namespace
}  // namespace nanquest::viewer
