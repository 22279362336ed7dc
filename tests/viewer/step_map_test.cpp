// The whole step in one line, and the ops around one op, held against the tables of the file.
#include "viewer/model/step_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "probe/snapshot/writer.h"
#include "tests/viewer/story.h"
#include "viewer/model/op_graph.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

class WholeStep : public testing::Story {
 protected:
  void SetUp() override {
    (void)testing::write_run(dir());
    session_.emplace(open(dir()));
    culprit_ = testing::fixture_doc().culprit.op;
  }
  const OpenIncident& incident() const { return *session_->incident(); }
  /// Which ops read what each op wrote, from the rows of the file alone: in the fixture each op writes a
  /// storage of its own.
  static std::map<std::int32_t, std::set<std::int32_t>> readers() {
    const SnapshotDoc doc = testing::fixture_doc();
    std::map<std::int32_t, std::int32_t> writer;
    std::map<std::int32_t, std::set<std::int32_t>> out;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(doc.ops.size()); ++i) {
      const OpRow& op = doc.ops[static_cast<std::size_t>(i)];
      for (std::int32_t a = 0; a < op.arg_count; ++a) {
        if (op.name == "aten::nll_loss_backward" && a == 1) continue;  // its values are not used
        const ArgRow& arg = doc.args[static_cast<std::size_t>(op.first_arg + a)];
        const auto made = writer.find(doc.tensors[static_cast<std::size_t>(arg.tensor)].slot);
        if (made != writer.end()) out[made->second].insert(i);
      }
      writer[doc.tensors[static_cast<std::size_t>(op.first_output)].slot] = i;
    }
    return out;
  }
  std::optional<Session> session_;
  std::int32_t culprit_ = kNone;
};

TEST_F(WholeStep, HasEveryOpItsPhaseAndItsMarks) {
  const SnapshotDoc doc = testing::fixture_doc();
  const StepMap map = step_map(incident());
  EXPECT_EQ(map.ops, doc.ops.size());
  ASSERT_EQ(map.phases.size(), 2u);
  EXPECT_EQ(map.phases[0].first, OpId{0});
  EXPECT_EQ(map.phases[0].last.row() + 1, map.phases[1].first.row());
  EXPECT_EQ(map.phases[1].phase, Phase::backward);
  EXPECT_EQ(map.phases[1].last.index() + 1, map.ops);
  std::vector<OpId> bad;
  for (std::size_t i = 0; i < doc.ops.size(); ++i) {
    const StatsRow& made = doc.stats[static_cast<std::size_t>(
        doc.tensors[static_cast<std::size_t>(doc.ops[i].first_output)].stats)];
    if (made.nan + made.pos_inf + made.neg_inf > 0) bad.push_back(OpId{i});
  }
  EXPECT_EQ(map.bad, bad);
  EXPECT_EQ(map.marks, (std::vector<StepMap::Marked>{{OpId{culprit_}, MapMark::inf_born},
                                                     {OpId{culprit_}, MapMark::culprit}}));
  EXPECT_EQ(born_text(incident(), map),
            "1 op made NaN or Inf of finite values: " + std::to_string(culprit_) + " aten::mm (Inf)");
}

TEST_F(WholeStep, InfinitiesThatArePutInOnPurposeAreMarkedAsSuch) {
  SnapshotDoc doc = testing::fixture_doc();
  for (Slot& slot : doc.slots) slot.data.clear();
  constexpr std::int32_t kMask = 5;
  OpRow& mask = doc.ops[kMask];
  mask.flags |= kOpBirth;
  doc.stats[static_cast<std::size_t>(doc.tensors[static_cast<std::size_t>(mask.first_output)].stats)]
      .neg_inf = 3;
  doc.culprit.suppressed = {kMask};
  const std::string path = temp_.path() + "/masked.h5";
  Result<SnapshotWriter> writer = SnapshotWriter::create(path);
  ASSERT_TRUE(writer && writer->write_doc(doc) && writer->commit());
  const Session masked = open(path);
  const StepMap map = step_map(*masked.incident());
  EXPECT_EQ(map.marks, (std::vector<StepMap::Marked>{{OpId{kMask}, MapMark::intended},
                                                     {OpId{culprit_}, MapMark::inf_born},
                                                     {OpId{culprit_}, MapMark::culprit}}));
  EXPECT_TRUE(born_text(*masked.incident(), map).starts_with("1 op made NaN or Inf")) << "the other one";
}

TEST_F(WholeStep, APlaceLeadsToItsOpAndAMarkToItself) {
  const StepMap map = step_map(incident());
  for (const OpId op : incident().trace.ops()) EXPECT_EQ(map.op_at(map.place_of(op)), op);
  EXPECT_EQ(map.op_at(0), OpId{0});
  EXPECT_EQ(map.op_at(1), OpId{map.ops - 1});
  EXPECT_EQ(map.op_at(-3), OpId{0});
  const double culprit = map.place_of(OpId{culprit_}), one = 1 / static_cast<double>(map.ops);
  EXPECT_EQ(map.target_at(culprit + 2.2 * one, 2.5 * one), OpId{culprit_}) << "near a mark: the mark";
  EXPECT_EQ(map.target_at(culprit + 3 * one, 2.5 * one), OpId{culprit_ + 3});
  EXPECT_FALSE(StepMap{}.op_at(0.5));
}

TEST_F(WholeStep, PartsAreBadThatOverlapABadOp) {
  const StepMap map = step_map(incident());
  for (const std::size_t count : {std::size_t{1}, std::size_t{7}, map.ops, 3 * map.ops, std::size_t{1000}}) {
    const std::vector<char> parts = map.bad_parts(count);
    ASSERT_EQ(parts.size(), count);
    for (std::size_t part = 0; part < count; ++part) {
      const bool expected = std::ranges::any_of(map.bad, [&](OpId op) {
        return op.index() * count < (part + 1) * map.ops && part * map.ops < (op.index() + 1) * count;
      });
      EXPECT_EQ(parts[part] != 0, expected) << part << " of " << count;
    }
  }
  EXPECT_TRUE(map.bad_parts(0).empty());
}

TEST_F(WholeStep, TheGraphHoldsTwoLevelsOfProducersAndConsumers) {
  const auto readers = this->readers();
  for (const OpId centre : incident().trace.ops()) {
    std::map<std::int32_t, int> expected = {{centre.row(), 0}};
    for (const int side : {1, -1})
      for (int distance = 1; distance <= 2; ++distance) {
        std::set<std::int32_t> next;
        for (const auto& [made, reads] : readers)
          for (const std::int32_t read : reads) {
            const std::int32_t from = side > 0 ? made : read, to = side > 0 ? read : made;
            const auto found = expected.find(from);
            if (found != expected.end() && found->second == side * (distance - 1)) next.insert(to);
          }
        for (const std::int32_t op : next) expected.try_emplace(op, side * distance);
      }
    const OpGraph graph = op_graph(incident().trace, centre, 2, 1000);
    std::map<std::int32_t, int> got;
    for (const OpGraph::Node& node : graph.nodes) got[node.op.row()] = node.level;
    EXPECT_EQ(got, expected) << centre.row();
    EXPECT_EQ(got.size(), graph.nodes.size()) << "each op once";
    std::size_t edges = 0;
    for (const auto& [made, reads] : readers)
      for (const std::int32_t read : reads) edges += got.count(made) && got.count(read) ? 1 : 0;
    EXPECT_EQ(graph.edges.size(), edges);
    for (const OpGraph::Edge& edge : graph.edges)
      EXPECT_TRUE(readers.at(graph.nodes[edge.from].op.row()).count(graph.nodes[edge.to].op.row()));
  }
}

TEST_F(WholeStep, OfManyOpsThoseOnThePathAreKept) {
  const OpGraph all = op_graph(incident().trace, OpId{culprit_ - 1}, 2, 1000);
  const OpGraph few = op_graph(incident().trace, OpId{culprit_ - 1}, 2, 1);
  for (int level = -2; level <= 2; ++level) {
    const auto count = [level](const OpGraph& graph) {
      return static_cast<std::size_t>(std::ranges::count(graph.nodes, level, &OpGraph::Node::level));
    };
    EXPECT_EQ(count(few) + few.missing(level), count(all)) << level;
    EXPECT_LE(count(few), 1u);
  }
  EXPECT_TRUE(std::ranges::any_of(few.nodes, [&](const OpGraph::Node& n) { return n.op == OpId{culprit_}; }));
}

TEST_F(WholeStep, CastsAreNamedByTheirFormats) {
  const SnapshotDoc doc = testing::fixture_doc();
  std::size_t casts = 0;
  for (const OpId op : incident().trace.ops()) {
    const bool is_cast = get(doc, op).name == "aten::_to_copy";
    casts += is_cast;
    EXPECT_EQ(cast_text(incident().trace, op), is_cast ? "fp32 > fp16" : "") << op.row();
  }
  EXPECT_EQ(casts, 8u);
}

TEST_F(WholeStep, TextCsvAndReportHaveTheseFacts) {
  session_->select_op(culprit_);
  const std::string text = panel_text(*session_, Panel::trace);
  EXPECT_TRUE(says(text, "1 op made NaN or Inf of finite values: " + std::to_string(culprit_))) << text;
  const PanelPage page = info_of(Panel::trace).page(*session_, Extent::whole);
  const PageTable& table = page.tables.back();
  EXPECT_TRUE(table.title.starts_with("Producers and consumers of op " + std::to_string(culprit_)))
      << table.title;
  ASSERT_GE(table.rows.size(), 3u);
  EXPECT_TRUE(std::ranges::any_of(table.rows, [&](const PageTable::Row& row) {
    return row.cells[0] == "0" && row.cells[1] == std::to_string(culprit_);
  }));
  const Result<std::string> csv = panel_csv(*session_, Panel::trace);
  ASSERT_TRUE(csv);
  EXPECT_TRUE(says(*csv, "source,born,cast,producers,first_divergence,fp32_amax"));
  EXPECT_TRUE(says(*csv, ",Inf,," + std::to_string(culprit_ - 1) + ",,")) << *csv;
  EXPECT_TRUE(says(*csv, ",fp32 > fp16,"));
}

}  // namespace
}  // namespace nanquest::viewer
