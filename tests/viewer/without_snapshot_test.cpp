// Incidents whose snapshot is damaged, gone or was never written: what is left of them is shown.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "probe/snapshot/manifest.h"
#include "probe/snapshot/run_dir.h"
#include "tests/viewer/story.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

class WithoutSnapshot : public testing::Story {};

TEST_F(WithoutSnapshot, ADamagedOneAloneShowsItsVerdict) {
  const std::string snapshot = testing::write_run(dir());
  fs::resize_file(snapshot, 100);
  Session session = open(snapshot);
  EXPECT_EQ(verdict_page(session).cause, Label::fp16_overflow);
  ASSERT_EQ(session.complaints().size(), 1u);
  EXPECT_TRUE(says(session.complaints()[0], snapshot)) << session.complaints()[0];
  for (const Panel panel : {Panel::norms, Panel::trace, Panel::tensor, Panel::runs})
    EXPECT_FALSE(panel_text(session, panel).empty());
  for (const Panel panel : {Panel::trace, Panel::tensor, Panel::batch}) {
    const std::string text = panel_text(session, panel);
    EXPECT_TRUE(says(text, "no ops and tensors can be shown") && says(text, snapshot)) << text;
  }
  fs::remove(verdict_path(snapshot));
  EXPECT_FALSE(Session::open(snapshot));
}

TEST_F(WithoutSnapshot, TheVerdictThatIsLeftIsShown) {
  const std::string snapshot = testing::write_run(dir(), {.manifest = false});
  fs::remove(snapshot);
  for (const std::string& path : {dir(), snapshot, verdict_path(snapshot)}) {
    Session session = open(path);
    EXPECT_EQ(verdict_page(session).cause, Label::fp16_overflow) << path;
    const std::string text = panel_text(session, Panel::verdict);
    EXPECT_TRUE(says(text, "not here")) << text;
    EXPECT_TRUE(says(panel_text(session, Panel::runs), "step 131")) << path;
  }
  fs::remove(series_path(dir(), 0));
  EXPECT_EQ(verdict_page(open(dir())).cause, Label::fp16_overflow) << "even if it is all there is";
}

TEST_F(WithoutSnapshot, AVerdictOpensItsSnapshot) {
  const std::string snapshot = testing::write_run(dir());
  const Session session = open(verdict_path(snapshot));
  ASSERT_NE(session.incident(), nullptr);
  EXPECT_EQ(session.incident()->reader.path(), snapshot);
}

TEST_F(WithoutSnapshot, IncidentsOfTheManifestAreListed) {
  testing::write_run(dir(), {.incidents = 2});
  fs::remove(incident_path(dir(), 90, 0));
  Session session = open(dir());
  ASSERT_NE(session.incident(), nullptr);
  EXPECT_EQ(session.incident()->doc.step, 131);
  const std::string runs = panel_text(session, Panel::runs);
  EXPECT_TRUE(says(runs, "2 incidents")) << runs;
  EXPECT_TRUE(says(runs, "step 90, rank 0: its snapshot is not here")) << runs;
  EXPECT_TRUE(session.complaints().empty()) << "a file that was removed is no trouble until it is asked for";
  session.select_step(90);
  EXPECT_EQ(session.incident(), nullptr);
  const std::string text = panel_text(session, Panel::verdict);
  EXPECT_TRUE(says(text, "the loss scale overflowed repeatedly")) << text;
  EXPECT_TRUE(says(text, "not here")) << text;
}

TEST_F(WithoutSnapshot, ARunWhoseFilesAreGoneHasIncidents) {
  testing::write_run(dir());
  fs::remove_all(incidents_dir(dir()));
  Session session = open(dir());
  const std::string runs = panel_text(session, Panel::runs);
  EXPECT_FALSE(says(runs, "no incidents")) << runs;
  EXPECT_TRUE(says(runs, "step 131")) << runs;
  EXPECT_TRUE(says(*panel_csv(session, Panel::runs), "\n131,0,")) << *panel_csv(session, Panel::runs);
  const std::string headline = verdict_page(session).headline;
  EXPECT_TRUE(says(headline, "aten::mm in blocks.3.mlp made 17 +Inf")) << headline;
}

TEST_F(WithoutSnapshot, OneThatWasNeverWrittenIsNotCalledLost) {
  testing::write_run(dir());
  Manifest manifest = *read_manifest(dir());
  manifest.incidents.push_back({140, 0, "", "non_finite", "step 140: the loss is NaN"});
  ASSERT_TRUE(write_manifest(dir(), manifest));
  Session session = open(dir());
  EXPECT_EQ(session.incident()->doc.step, 131);
  const std::string runs = panel_text(session, Panel::runs);
  EXPECT_TRUE(says(runs, "step 140, rank 0: no snapshot was written. the loss is NaN\n")) << runs;
  session.select_step(140);
  EXPECT_EQ(verdict_page(session).headline,
            "Step 140 was not finite: the loss is NaN; no snapshot of it was written");
}

/// A series that knows of no bad step does not make the incidents unknown.
TEST_F(WithoutSnapshot, AnIncidentOfTheManifestOutweighsAWellSeries) {
  testing::write_run(dir());
  testing::write_series(dir(), testing::fixture_history(80));
  fs::remove_all(incidents_dir(dir()));
  const std::string headline = verdict_page(open(dir())).headline;
  EXPECT_TRUE(says(headline, "tep 131")) << headline;
  EXPECT_FALSE(says(headline, "No incident")) << headline;
}

TEST_F(WithoutSnapshot, ChoosingTheStepThatIsOpenKeepsTheIncident) {
  const std::string snapshot = testing::write_run(dir());
  fs::copy_file(snapshot, incidents_dir(dir()) + "/step-00000131.r0.2.h5");
  Session session = open(dir());
  const int before = session.selection().incident;
  session.select_step(131);
  EXPECT_EQ(session.selection().incident, before) << "a second failure of the same step";
}

TEST_F(WithoutSnapshot, WithoutAManifestTheFilesSayWhichGateFailed) {
  testing::write_run(dir(), {.replayed = false, .manifest = false, .incidents = 2});
  const Session session = open(dir());
  ASSERT_NE(session.incident(), nullptr);
  EXPECT_EQ(session.incident()->doc.step, 131) << "step 90 is an overflow of the loss scale";
}

}  // namespace
}  // namespace nanquest::viewer
