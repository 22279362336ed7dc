// What a run found that is no incident: on the page of a run without incidents, and in the list of runs.
#include "viewer/model/findings.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/viewer/story.h"
#include "viewer/panels/registry.h"
#include "viewer/report/report.h"

namespace nanquest::viewer {
namespace {

class Findings : public testing::Story {
 protected:
  /// A run with these findings; `healthy`: without incidents.
  Session with(std::vector<ManifestFinding> findings, bool healthy = true, std::int32_t ranks = 1) {
    testing::write_run(dir());
    if (healthy) std::filesystem::remove_all(incidents_dir(dir()));
    Manifest manifest = *read_manifest(dir());
    if (healthy) manifest.incidents.clear();
    manifest.world_size = ranks;
    manifest.findings = std::move(findings);
    if (!write_manifest(dir(), manifest)) throw std::runtime_error("no manifest could be written");
    testing::write_series(dir(), testing::fixture_history(80));
    return open(dir());
  }
  const ManifestFinding dead_{48,
                              0,
                              "nothing_learned",
                              "NO_GRADIENT",
                              "blocks.3.mlp.up.weight",
                              "",
                              "blocks.3.mlp.up.weight and 3 more weights get no gradient"};
  const ManifestFinding bad_{
      60, 2, "bad_checkpoint", "BAD_STATE", "head.weight", "last.pt", "7 NaN were saved"};
};

TEST_F(Findings, AHealthyRunsVerdictNamesThem) {
  Session session = with({dead_, bad_});
  const std::string text = panel_text(session, Panel::verdict);
  EXPECT_EQ(text.find("No incident: steps 0 to 79 were finite; 2 findings\n"), 0u) << text;
  EXPECT_TRUE(says(text, "step 48: NO_GRADIENT: blocks.3.mlp.up.weight and 3 more weights get no gradient"))
      << text;
  EXPECT_TRUE(says(text, "step 60: BAD_STATE: 7 NaN were saved")) << text;
  const std::string csv = *panel_csv(session, Panel::verdict);
  EXPECT_TRUE(says(csv, "finding:nothing_learned,NO_GRADIENT,step 48: NO_GRADIENT: ")) << csv;
  EXPECT_FALSE(says(csv, "fact,Found,")) << "each once:\n" << csv;
  const std::string html = report_html(session, {}, "");
  EXPECT_TRUE(says(html, "<dt>Found</dt><dd class=\"caution\">"));
  EXPECT_TRUE(says(html, "7 NaN were saved"));
  EXPECT_TRUE(says(html, "nothing_learned")) << "kind, in the table of the runs";
}

TEST_F(Findings, ManyAreCutShortInTheVerdictAndAllAreInTheRuns) {
  std::vector<ManifestFinding> many;
  for (int i = 0; i < 11; ++i) {
    many.push_back(dead_);
    many.back().step = 100 + i;
  }
  Session session = with(many);
  const std::string verdict = panel_text(session, Panel::verdict), runs = panel_text(session, Panel::runs);
  EXPECT_TRUE(says(verdict, "step 107: ")) << verdict;
  EXPECT_FALSE(says(verdict, "step 108: ")) << verdict;
  EXPECT_TRUE(says(verdict, "3 more findings, listed in the panel Runs")) << verdict;
  EXPECT_TRUE(says(runs, "11 findings\n  step 100: ") && says(runs, "step 110: ")) << runs;
}

TEST_F(Findings, ARunWithAnIncidentListsThemAmongTheRuns) {
  Session session = with({dead_}, false);
  EXPECT_FALSE(says(panel_text(session, Panel::verdict), "NO_GRADIENT")) << "that page is of the incident";
  EXPECT_TRUE(says(panel_text(session, Panel::runs), "1 finding\n  step 48: NO_GRADIENT: "));
}

TEST_F(Findings, TheRankIsNamedIfThereAreSeveral) {
  EXPECT_EQ(finding_text(bad_, true), "step 60, rank 2: BAD_STATE: 7 NaN were saved");
  const Session session = with({bad_}, false, 4);
  const PageTable table = findings_table(session, true);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].cells.size(), table.columns.size());
  EXPECT_EQ(table.rows[0].cells[1], "2");
}

TEST_F(Findings, WithoutAnyNothingIsSaid) {
  Session session = with({});
  EXPECT_TRUE(finding_facts(session).empty());
  EXPECT_FALSE(says(panel_text(session, Panel::all), "finding"));
}

}  // namespace
}  // namespace nanquest::viewer
