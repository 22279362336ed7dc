// The place of an op or a weight among several processes, on steps written by hand. Real ones:
// tests/attach/ddp/shapes_test.py.
#include "probe/trace/placement.h"

#include <gtest/gtest.h>

#include "probe/trace/culprit.h"
#include "tests/trace/steps.h"

namespace nanquest::testing {
namespace {

/// Four micro-batches through two of six stages; in each pass a received value is read, an op runs, and a
/// loss is computed.
struct Piped : Steps {
  Piped() {
    doc.environment["pipeline"] = "4 6 1 3";
    for (std::int32_t pass = 0; pass < 8; ++pass) {
      const SlotId in = slot(4), out = slot(4);
      op("c10d::recv_", {}, {whole(in, 4)});
      ops.push_back(op("aten::log", {whole(in, 4)}, {whole(out, 4)}));
      (*this)[ops.back()].micro_batch = pass;
    }
  }
  std::vector<OpId> ops;
};

TEST(Placement, AnOpOfAPipelineHasItsMicroBatchAndStage) {
  Piped s;
  EXPECT_EQ(pass_of(s.doc, s.ops[0]), "micro-batch 1 of 4, stage 2 of 6");
  EXPECT_EQ(pass_of(s.doc, s.ops[3]), "micro-batch 4 of 4, stage 2 of 6");
  EXPECT_EQ(pass_of(s.doc, s.ops[6]), "micro-batch 3 of 4, stage 4 of 6");
  EXPECT_EQ(pass_of(s.doc, OpId{}), "");
  s[s.ops[6]].phase = Phase::optimizer;
  EXPECT_EQ(pass_of(s.doc, s.ops[6]), "") << "an update is of all micro-batches";
}

TEST(Placement, AWeightIsReadByAllMicroBatches) {
  Piped s;
  s.doc.culprit.origin = "parameter";
  EXPECT_EQ(pass_of(s.doc, s.ops[6]), "stage 4 of 6");
}

TEST(Placement, WhatArrivedIsOfThePassThatReadsIt) {
  Piped s;
  const OpId received{s.ops[6].row() - 1};
  EXPECT_EQ(pass_of(s.doc, received), "") << "nobody is known to have read it";
  s.doc.culprit.lineage = {received.row(), s.ops[6].row()};
  EXPECT_EQ(pass_of(s.doc, received), "micro-batch 3 of 4, stage 4 of 6");
}

TEST(Placement, NotesThatCanNotBeOnesSayNothing) {
  Piped s;
  for (const char* note : {"", "4", "4 6", "0 6 1", "4 x 1", "4 6 -1", "99999999999 6 1"}) {
    s.doc.environment["pipeline"] = note;
    EXPECT_EQ(pass_of(s.doc, s.ops[0]), "") << note;
  }
  s.doc.environment["pipeline"] = "2 6 1";
  EXPECT_EQ(pass_of(s.doc, s.ops[7]), "") << "no stage is known for it";
  s.doc.environment.erase("pipeline");
  EXPECT_EQ(pass_of(s.doc, s.ops[0]), "");
}

TEST(Placement, AWeightAndItsMomentsHaveOnePart) {
  SnapshotDoc doc;
  doc.environment["part_of.0.up.weight"] = "rows 0 to 15 of 32";
  EXPECT_EQ(part_of(doc, "0.up.weight"), "rows 0 to 15 of 32");
  EXPECT_EQ(part_of(doc, "exp_avg.0.up.weight"), "rows 0 to 15 of 32");
  EXPECT_EQ(part_of(doc, "up.weight"), "");
  EXPECT_EQ(part_of(doc, ""), "");
  EXPECT_TRUE(tells_of_ranks("part_of.0.up.weight") && tells_of_ranks("pipeline"));
  EXPECT_TRUE(tells_of_ranks("process_group.0") && tells_of_ranks("replicas") &&
              tells_of_ranks("replicas.but"));
  EXPECT_FALSE(tells_of_ranks("pipeline_threads") || tells_of_ranks("num_threads"));
}

TEST(Placement, IsToldWithTheCulprit) {
  Steps s;
  s.doc.environment = {{"pipeline", "2 2 1"}, {"part_of.w", "elements 2 to 3 of 4"}};
  const SlotId weight = s.slot(4, SlotOrigin::parameter, "w"), out = s.slot(1);
  s.loss("aten::sum", {whole(weight, 4, kOneNan)}, whole(out, 1, kOneNan));
  ASSERT_TRUE(find_culprit(s.doc));
  EXPECT_EQ(describe_culprit(s.doc),
            "parameter w (elements 2 to 3 of 4) held 1 x nan when it was first read, by aten::sum (forward, "
            "stage 2 of 2)");
}

}  // namespace
}  // namespace nanquest::testing
