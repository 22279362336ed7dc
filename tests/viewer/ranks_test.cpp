// The grid of ranks: what each rank left of a step, and which was first.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/writer.h"
#include "replay/verdict/json.h"
#include "tests/viewer/story.h"
#include "viewer/model/rank_grid.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

class RankGrids : public testing::Story {
 protected:
  /// As write_ranks does. `verdict_names_first`: it blames rank 0.
  void write(std::int32_t world, bool verdict_names_first) {
    const std::string snapshot = testing::write_run(dir());
    testing::write_ranks(dir(), world);
    if (!verdict_names_first) return;
    Verdict verdict = *read_verdict(verdict_path(snapshot));
    verdict.ranks = Ranks{};
    verdict.ranks->world_size = world;
    verdict.ranks->first = RankCulprit{0, "aten::mm", "head", 5, snapshot, Origin::op, "", -1};
    verdict.ranks->text = "The bad value was made on rank 0.";
    ASSERT_TRUE(write_file_atomically(verdict_path(snapshot), to_json(verdict)));
  }
  /// A rank's whole file of step 131; its bad value was made by itself or came by a collective.
  void leave_file(std::int32_t rank, bool arrived) {
    SnapshotDoc doc = testing::fixture_doc();
    doc.rank = rank;
    doc.world_size = 3;
    for (Slot& slot : doc.slots) slot.data.clear();
    if (arrived) doc.ops[static_cast<std::size_t>(doc.culprit.op)].name = "c10d::allreduce_";
    std::filesystem::create_directories(incidents_dir(dir()));
    Result<SnapshotWriter> writer = SnapshotWriter::create(incident_path(dir(), doc.step, rank));
    ASSERT_TRUE(writer && writer->write_doc(doc) && writer->commit());
  }
  void write_row(const RankRow& row) {
    ASSERT_TRUE(write_file_atomically(rank_row_path(dir(), row.step, row.rank), to_line(row)));
  }
};

/// The panel finds the cell of a row by its id, whatever the row's text is.
TEST_F(RankGrids, EachRowOfTheTableCarriesItsRank) {
  write(40, false);
  Session session = open(dir());
  const RankGrid grid = rank_grid(session);
  for (const PageTable& table : info_of(Panel::ranks).page(session, Extent::glance).tables)
    for (const PageTable::Row& row : table.rows) {
      ASSERT_GE(row.id, 0);
      EXPECT_EQ(std::to_string(grid.cells.at(static_cast<std::size_t>(row.id)).rank), row.cells.front());
    }
}

TEST_F(RankGrids, EachRankHasACellWithWhatItLeft) {
  write(6, false);
  Session session = open(dir());
  const RankGrid grid = rank_grid(session);
  ASSERT_EQ(grid.cells.size(), 6u);
  const RankLeft left[] = {RankLeft::file, RankLeft::row, RankLeft::row,
                           RankLeft::file, RankLeft::row, RankLeft::nothing};
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(grid.cells[i].rank, static_cast<std::int32_t>(i));
    EXPECT_EQ(grid.cells[i].left, left[i]) << i;
    EXPECT_EQ(grid.cells[i].first, i == 3) << "the rows name rank 3";
  }
  EXPECT_EQ(grid.headline(), "Step 131: 2 of 6 ranks left a whole file, 3 a row, 1 nothing");
  EXPECT_TRUE(says(grid.first_text, "rank 3, say the rows")) << grid.first_text;
  EXPECT_EQ(grid.cells[2].text(), "rank 2 left a row: had something bad of its own");
  EXPECT_EQ(session.incidents()[static_cast<std::size_t>(grid.cells[3].incident)].files.rank, 3);
}

/// The step was not replayed: what each file says of itself is shown all the same.
TEST_F(RankGrids, ARankThatMadeItIsShownBeforeThoseThatItCameTo) {
  leave_file(0, true);
  leave_file(1, true);
  {
    Session session = open(dir());
    EXPECT_EQ(session.entry()->files.rank, 0);
    const VerdictPage page = verdict_page(session);
    EXPECT_EQ(page.headline, "Another rank's +Inf came by c10d::allreduce_ in blocks.3.mlp at step 131");
    ASSERT_FALSE(page.facts.empty());
    EXPECT_TRUE(says(page.facts[0].text, "what this rank gave was finite")) << page.facts[0].text;
  }
  leave_file(2, false);
  Session session = open(dir());
  EXPECT_EQ(session.entry()->files.rank, 2);
  EXPECT_EQ(verdict_page(session).headline, "aten::mm in blocks.3.mlp made the first +Inf at step 131");
  const RankGrid grid = rank_grid(session);
  ASSERT_EQ(grid.cells.size(), 3u);
  for (const std::size_t rank : {0, 1})
    EXPECT_TRUE(says(grid.cells[rank].about, "arrived by c10d::allreduce_")) << grid.cells[rank].about;
  EXPECT_TRUE(says(grid.cells[2].about, "made 17 x +inf")) << grid.cells[2].about;
}

/// A verdict on a rank's file that knows the others' names the rank that made the value.
TEST_F(RankGrids, TheHeadlineSaysWhoseValueArrived) {
  write(6, true);
  Verdict verdict = *read_verdict(verdict_path(incident_path(dir(), testing::kBadStep, 0)));
  verdict.culprit.op = verdict.ranks->arrived_by = "c10d::allreduce_";
  verdict.ranks->first->rank = 3;
  ASSERT_TRUE(
      write_file_atomically(verdict_path(incident_path(dir(), testing::kBadStep, 0)), to_json(verdict)));
  const VerdictPage page = verdict_page(open(dir()));
  EXPECT_TRUE(page.headline.starts_with("Rank 3's +Inf came by c10d::allreduce_ in ")) << page.headline;
  EXPECT_TRUE(page.headline.ends_with(" at step 131")) << page.headline;
}

TEST_F(RankGrids, TheVerdictHasComparedTheFilesAndCounts) {
  write(6, true);
  Session session = open(dir());
  const RankGrid grid = rank_grid(session);
  EXPECT_TRUE(grid.cells[0].first);
  EXPECT_FALSE(grid.cells[3].first);
  EXPECT_EQ(grid.first_text, "rank 0, says the verdict: aten::mm in head");
  EXPECT_EQ(grid.verdict_text, "The bad value was made on rank 0.");
}

TEST_F(RankGrids, TextAndCsvHoldThem) {
  write(40, false);
  Session session = open(dir());
  const std::string text = panel_text(session, Panel::ranks), csv = *panel_csv(session, Panel::ranks);
  EXPECT_TRUE(says(text, "2 of 40 ranks left a whole file, 37 a row, 1 nothing")) << text;
  EXPECT_TRUE(says(text, "28 more are in the CSV")) << text;
  EXPECT_TRUE(says(text, "aten::log in head")) << "who has something of its own comes before who got it";
  EXPECT_TRUE(says(text, "36 got it by a collective")) << text;
  std::istringstream lines(csv);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(line, "step,rank,left,first,says,collectives_before,what,snapshot");
  int rank = 0;
  for (; std::getline(lines, line); ++rank)
    EXPECT_TRUE(line.starts_with("131," + std::to_string(rank) + ",")) << line;
  EXPECT_EQ(rank, 40);
  EXPECT_TRUE(says(csv, "131,3,a whole file,yes,")) << csv;
  EXPECT_TRUE(says(csv, "131,2,a row,,had something bad of its own,9,aten::log in head (forward),\n")) << csv;
  EXPECT_TRUE(says(csv, "131,39,nothing,,,,,\n")) << csv;
}

TEST_F(RankGrids, OneProcessHasNone) {
  testing::write_run(dir());
  write_row({Standing::arrived, -1, "", 131, 1, 4, 0});  // left by another process
  Session session = open(dir());
  EXPECT_TRUE(rank_grid(session).cells.empty());
  EXPECT_TRUE(says(panel_text(session, Panel::ranks), "the run is one process"));
  EXPECT_EQ(*panel_csv(session, Panel::ranks),
            "step,rank,left,first,says,collectives_before,what,snapshot\n");
}

TEST_F(RankGrids, WhatNobodyCanBelieveIsCutAndSaid) {
  write(4, false);
  Manifest manifest = *read_manifest(dir());
  manifest.world_size = 2'000'000'000;
  ASSERT_TRUE(write_manifest(dir(), manifest));
  ASSERT_TRUE(write_file_atomically(rank_row_path(dir(), 131, 2), "{\"rank\": 2"));
  Session session = open(dir());
  const RankGrid grid = rank_grid(session);
  EXPECT_EQ(grid.cells.size(), static_cast<std::size_t>(kMostRanks));
  EXPECT_EQ(grid.cells[2].left, RankLeft::nothing) << "half a row is none";
  EXPECT_TRUE(says(panel_text(session, Panel::ranks), "the first 65,536 ranks"));
}

TEST_F(RankGrids, ARowThatComesLaterIsSeen) {
  write(6, false);
  Session session = open(dir());
  EXPECT_EQ(rank_grid(session).count(RankLeft::nothing), 1u);
  write_row({Standing::loss_bad, -1, "", 131, 5, 6, 3});
  EXPECT_TRUE(session.poll());
  EXPECT_EQ(rank_grid(session).count(RankLeft::nothing), 0u);
  EXPECT_FALSE(session.poll());
}

}  // namespace
}  // namespace nanquest::viewer
