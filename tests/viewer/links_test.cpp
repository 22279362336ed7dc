// The targets of words of a run, and the content of the strip.
#include "viewer/model/links.h"

#include <filesystem>

#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/writer.h"
#include "probe/trace/graph.h"
#include "tests/viewer/story.h"
#include "viewer/model/strip.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/trail.h"

namespace nanquest::viewer {
namespace {

using Kind = Link::Kind;

class Links : public testing::Story {
 protected:
  void SetUp() override { snapshot_ = testing::write_run(dir(), {.incidents = 2}); }
  /// The links of a text, and that nothing of the text is lost.
  static std::vector<Link> links_of(const Session& session, const std::string& text) {
    std::vector<Link> out;
    std::string whole;
    for (const Span& span : Names(session).linked(text)) {
      whole += span.text;
      if (span.link) out.push_back(*span.link);
    }
    EXPECT_EQ(whole, text);
    return out;
  }
  std::string snapshot_;
};

TEST_F(Links, OpsStepsSamplesLayersAndWeightsAreFound) {
  const Session session = open(dir());
  const std::int32_t culprit = session.incident()->doc.culprit.op;
  const auto links = links_of(session,
                              "aten::mm in blocks.3.mlp.up at step 131, op 12; sample 3 "
                              "(weight_norm of head, blocks.3.mlp.up.weight).");
  ASSERT_EQ(links.size(), 7u);
  EXPECT_EQ(links[0].kind, Kind::op);
  EXPECT_EQ(links[1], (Link{Kind::layer, kNone, "blocks.3.mlp.up", {}}));
  EXPECT_EQ(links[2], (Link{Kind::step, 131, "", {}}));
  EXPECT_EQ(links[3], (Link{Kind::op, 12, "", {}}));
  EXPECT_EQ(links[4].kind, Kind::sample);
  EXPECT_EQ(links[4].number, 3);
  EXPECT_EQ(links[5], (Link{Kind::layer, kNone, "head", Statistic::weight}));
  EXPECT_EQ(links[6], (Link{Kind::tensor, kNone, "parameters/blocks.3.mlp.up.weight", {}}));
  const std::string name = session.incident()->doc.ops[static_cast<std::size_t>(culprit)].name;
  ASSERT_EQ(links_of(session, name + " in nothing").size(), 1u);
  EXPECT_EQ(links_of(session, name + " in nothing")[0].number, culprit)
      << "the culprit before another of its name";
}

TEST_F(Links, WhatIsNotInTheRunIsPlain) {
  const Session session = open(dir());
  for (const char* text : {"", "nothing of it", "step 99999", "op 123456", "op -1", "op 12x",
                           "std::vector in x", "samples 0 to 7", "the stepping op", "step", "op"})
    EXPECT_TRUE(links_of(session, text).empty()) << text;
}

TEST_F(Links, EveryOpOfTheRunIsFoundByItsNameAndModule) {
  const Session session = open(dir());
  const Names names(session);
  const TraceView& trace = session.incident()->trace;
  for (const OpId op : trace.ops()) {
    const std::string name = get(session.incident()->doc, op).name;
    const auto link = names.op(name, trace.module(op));
    ASSERT_TRUE(link) << name;
    const OpId found{static_cast<std::int32_t>(link->number)};
    EXPECT_EQ(get(session.incident()->doc, found).name, name);
    EXPECT_EQ(trace.module(found), trace.module(op));
  }
}

TEST_F(Links, FollowingSelects) {
  Session session = open(dir());
  follow(session, {Kind::op, 12, "", {}});
  EXPECT_EQ(session.selection().op, 12);
  follow(session, {Kind::layer, kNone, "head", Statistic::weight});
  EXPECT_EQ(session.selection().layer, "head");
  EXPECT_EQ(session.selection().statistic, Statistic::weight);
  follow(session, {Kind::tensor, kNone, "parameters/head.weight", {}});
  EXPECT_EQ(session.selection().tensor, "parameters/head.weight");
  follow(session, {Kind::step, 90, "", {}});
  EXPECT_EQ(session.selection().step, 90);
  EXPECT_EQ(session.incident()->doc.step, 90) << "the incident of that step opens";
}

TEST_F(Links, WithoutItsSnapshotLayersAndStepsAreLeft) {
  std::filesystem::remove(snapshot_);
  const Session session = open(dir());
  ASSERT_EQ(session.incident(), nullptr);
  EXPECT_TRUE(links_of(session, "aten::mm, op 12").empty());
  EXPECT_EQ(links_of(session, "head at step 131").size(), 2u);
}

TEST_F(Links, TheStripSaysWhatTheVerdictSays) {
  Session session = open(dir());
  const Strip strip = strip_of(session);
  const VerdictPage page = verdict_page(session);
  EXPECT_EQ(strip.cause, page.cause);
  EXPECT_EQ(strip.says, "FP16_OVERFLOW");
  ASSERT_TRUE(strip.breaks.broke);
  EXPECT_EQ(strip.breaks.broke->number, session.incident()->doc.culprit.op);
  std::string all;
  for (const Span& fact : strip.facts) all += fact.text + "|";
  EXPECT_TRUE(says(all, "step 131|")) << all;
  EXPECT_TRUE(says(all, "confidence 85 %|")) << all;
  EXPECT_EQ(strip.age, "under a minute");
  session.select_step(90);
  EXPECT_EQ(strip_of(session).says, "not replayed yet");
  EXPECT_FALSE(strip_of(session).cause);
}

/// Its doc has an op without room before the culprit, which itself leaves none.
TEST_F(Links, WhereItBeganIsTheFirstOpWithoutRoom) {
  SnapshotDoc doc = testing::fixture_doc();
  for (Slot& slot : doc.slots) slot.data.clear();
  const std::int32_t early = doc.culprit.op - 2;
  const TraceGraph graph(doc);
  ASSERT_FALSE(graph.written(OpId{early}).empty());
  const std::int32_t stats = get(doc, graph.written(OpId{early}).front()).stats;
  ASSERT_NE(stats, kNone);
  const std::string path = temp_.path() + "/early.h5";
  const auto breaks = [&](double amax) {
    doc.stats[static_cast<std::size_t>(stats)].amax = amax;
    Result<SnapshotWriter> writer = SnapshotWriter::create(path);
    EXPECT_TRUE(writer && writer->write_doc(doc) && writer->commit());
    const Breaks out = breaks_of(open(path));
    std::filesystem::remove(path);
    return out;
  };
  ASSERT_TRUE(breaks(1).broke);
  EXPECT_FALSE(breaks(1).began);
  ASSERT_TRUE(breaks(60000).began) << "of fp16's 65504";
  EXPECT_EQ(*breaks(60000).began, Link::to_op(early));
  EXPECT_EQ(*breaks(60000).broke, Link::to_op(doc.culprit.op));
}

TEST_F(Links, TheStripOfAHealthyRunSaysSo) {
  const std::string run = temp_.path() + "/healthy";
  std::filesystem::create_directories(run);
  testing::write_series(run, testing::fixture_history(80));
  const Session session = open(run);
  EXPECT_EQ(strip_of(session).says, verdict_page(session).headline);
  EXPECT_TRUE(strip_of(session).facts.empty());
  EXPECT_FALSE(strip_of(session).breaks.broke);
}

TEST(Trail, GoesBackAndForthAndForgetsWhatLayAhead) {
  Trail trail;
  Selection at;
  for (const int op : {1, 2, 2, 3}) {
    at.op = op;
    trail.visit(at, Panel::trace);
  }
  EXPECT_EQ(trail.back()->selection.op, 2);
  EXPECT_EQ(trail.back()->selection.op, 1);
  EXPECT_EQ(trail.back(), nullptr);
  EXPECT_EQ(trail.forward()->selection.op, 2);
  at.op = 9;
  trail.visit(at, Panel::norms);
  EXPECT_FALSE(trail.can_go_forward());
  EXPECT_EQ(trail.back()->selection.op, 2);
  EXPECT_EQ(trail.forward()->panel, Panel::norms);
  for (int op = 0; op < 1000; ++op) {
    at.op = op;
    trail.visit(at, Panel::trace);
  }
  int places = 0;
  while (trail.back() != nullptr) ++places;
  EXPECT_LE(places, 200);
}

}  // namespace
}  // namespace nanquest::viewer
