// Texts agree with the data: the verdict has the trace's counts, a link is where something is named, a path
// is that of the selected op, and what is missing is reported as missing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>

#include "probe/snapshot/manifest.h"
#include "probe/snapshot/writer.h"
#include "probe/trace/graph.h"
#include "replay/verdict/json.h"
#include "tests/viewer/story.h"
#include "viewer/model/kept.h"
#include "viewer/model/layer_table.h"
#include "viewer/model/links.h"
#include "viewer/model/numbers.h"
#include "viewer/model/strip.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

class Known : public testing::Story {
 protected:
  /// A session on a file of `doc`; with the fixture's verdict as `change` leaves it, if it is given.
  Session on(SnapshotDoc doc, const std::function<void(Verdict&)>& change = {}) {
    for (Slot& slot : doc.slots) slot.data.clear();
    const std::string path = temp_.path() + "/step-00000131.r0.h5";
    fs::remove(path);
    Result<SnapshotWriter> writer = SnapshotWriter::create(path);
    EXPECT_TRUE(writer && writer->write_doc(doc) && writer->commit());
    if (change) {
      Result<Verdict> verdict = verdict_from_json(testing::fixture_verdict());
      EXPECT_TRUE(verdict);
      change(*verdict);
      std::ofstream(verdict_path(path)) << to_json(*verdict);
    }
    return open(path);
  }
  /// What the op wrote first, to be changed.
  static StatsRow& written(SnapshotDoc& doc, std::int32_t op) {
    const TraceGraph graph(doc);
    const std::int32_t stats = get(doc, graph.written(OpId{op}).front()).stats;
    return doc.stats[static_cast<std::size_t>(stats)];
  }
  static std::string fact(const std::vector<Fact>& facts, const std::string& label) {
    for (const Fact& f : facts)
      if (f.label == label) return f.text;
    return "";
  }
  static bool any(const std::vector<Fact>& facts, const std::string& part) {
    for (const Fact& f : facts)
      if (says(f.text, part)) return true;
    return false;
  }
};

TEST_F(Known, TheHeadlineCountsWhatTheTraceCounts) {
  SnapshotDoc doc = testing::fixture_doc();
  const std::int32_t culprit = doc.culprit.op;
  StatsRow& made = written(doc, culprit);
  made.nan = 3;
  made.pos_inf = 0;
  written(doc, culprit - 1).pos_inf = 7;
  const auto same = [](Verdict&) {};
  VerdictPage page = verdict_page(on(doc, same));
  EXPECT_TRUE(says(page.headline, "made the first NaN")) << page.headline;
  EXPECT_TRUE(says(fact(page.facts, "What"), "3 NaN in")) << fact(page.facts, "What");
  written(doc, culprit).pos_inf = 2;
  page = verdict_page(on(doc, same));
  EXPECT_TRUE(says(page.headline, "made non-finite values"))
      << page.headline << ": the op before made +Inf too";
}

TEST_F(Known, WhatTheVerdictBlamesIsNotMarkedIntended) {
  SnapshotDoc doc = testing::fixture_doc();
  const std::int32_t culprit = doc.culprit.op, other = culprit - 1, mask = culprit - 2;
  doc.culprit.suppressed = {culprit, other};
  const Session session = on(doc, [&](Verdict& v) {
    v.blame.tried = true;
    v.blame.set = {{.op = v.culprit.op, .index = culprit, .module = "", .phase = {}, .tensor = ""},
                   {.op = "aten::gelu", .index = other, .module = "", .phase = {}, .tensor = ""}};
    v.blame.intended = {{.op = "aten::mm", .index = mask, .module = "", .phase = {}, .tensor = ""}};
  });
  const TraceView& trace = session.incident()->trace;
  EXPECT_EQ(trace.mark(OpId{culprit}), OpMark::culprit);
  EXPECT_NE(trace.mark(OpId{other}), OpMark::suppressed);
  EXPECT_EQ(trace.mark(OpId{mask}), OpMark::suppressed) << "the verdict's are the trace's";
}

TEST_F(Known, AFiniteChangeThatIsNoFixSaysWhyInItsRow) {
  testing::write_run(dir());
  Session session = open(dir());
  Verdict v = *session.verdict();
  v.counterfactuals.push_back(
      {.change = "x in fp32", .kind = ChangeKind::precision, .result = TrialResult::finite});
  v.counterfactuals.back().not_a_fix = "3 ops now give zeros alone where fp64 gives numbers";
  std::ofstream(verdict_path(session.entry()->files.snapshot)) << to_json(v);
  session = open(dir());
  for (const PageTable& table : verdict_tables(verdict_page(session)))
    for (const PageTable::Row& row : table.rows)
      if (row.cells.back() == "x in fp32") {
        EXPECT_EQ(row.cells.front(), "finite, but 3 ops now give zeros alone where fp64 gives numbers");
        EXPECT_EQ(row.sign, Sign::caution);
        return;
      }
  FAIL() << "the change has no row";
}

TEST_F(Known, NoneFiniteIsSaidOfNothingFiniteAlone) {
  ValueRange range{.known = true, .count = 131072, .nan = 7, .has_amax = true, .has_headroom = true};
  EXPECT_STREQ(room_words(range), "finite ones zero");
  range.nan = range.count;
  EXPECT_STREQ(room_words(range), "none finite");
  range.nan = 0;
  EXPECT_STREQ(room_words(range), "zeros");
}

TEST_F(Known, TheLargestGradientBesideANormOfNaNIsNotZero) {
  std::vector<SeriesTable> tables = testing::fixture_history(10);
  testing::column_of(tables, "grad_norm", "head")[5] = std::nan("");
  testing::column_of(tables, "grad_amax", "head")[5] = 0;
  const PageTable table = page_table(layer_table(History(tables), Statistic::gradient, 5, 0, 10));
  const auto is_amax = [](const TextColumn& c) {
    return c.title == statistic_title(Statistic::gradient_amax);
  };
  const auto column = std::ranges::find_if(table.columns, is_amax) - table.columns.begin();
  for (const PageTable::Row& row : table.rows)
    if (row.cells[0] == "head") {
      EXPECT_EQ(row.cells[static_cast<std::size_t>(column)], "-");
    }
}

TEST_F(Known, ANumberIsALinkOnlyWhereAModuleIsNamed) {
  SnapshotDoc doc = testing::fixture_doc();
  for (std::size_t i = 0; i < doc.modules.size(); ++i) doc.modules[i].path = std::to_string(i);
  const Session session = on(doc);
  const Names names(session);
  for (const char* text : {"rank 1 of 2", "[1, 20]", "2 of 8 elements", "0.1 to 3", "in 1 of 6 elements"})
    for (const Span& span : names.linked(text)) EXPECT_FALSE(span.link) << text;
  for (const char* text : {"forward, module 2, op", "aten::nothing in 2 (forward)"}) {
    int links = 0;
    for (const Span& span : names.linked(text))
      if (span.link && span.text == "2") ++links;
    EXPECT_EQ(links, 1) << text;
  }
}

TEST_F(Known, WithoutAVerdictAnUnknownPhaseIsNotForward) {
  SnapshotDoc doc = testing::fixture_doc();
  doc.culprit = {};
  Session session = on(doc);
  const VerdictPage page = verdict_page(session);
  EXPECT_EQ(page.state, VerdictPage::State::not_replayed);
  EXPECT_FALSE(says(panel_text(session, Panel::verdict), "forward")) << panel_text(session, Panel::verdict);
  EXPECT_TRUE(says(fact(page.facts, "What"), "doesn't say")) << fact(page.facts, "What");
}

TEST_F(Known, ALostSeriesIsSaidToBeLost) {
  testing::write_run(dir());
  EXPECT_EQ(open(dir()).lost_series(), "");
  fs::remove(dir() + "/series.r0.h5");
  Session session = open(dir());
  for (const Panel panel : {Panel::timeline, Panel::runs}) {
    const std::string text = panel_text(session, panel);
    EXPECT_TRUE(says(text, "series file is not here")) << text;
  }
  EXPECT_TRUE(says(session.lost_series(), "those that the incident's file holds")) << session.lost_series();
}

TEST_F(Known, AReplayFileThatIsMissingOrCutIsNamed) {
  const std::string snapshot = testing::write_run(dir(), {.watched = false});
  EXPECT_EQ(open(dir()).incident()->replay_error, "");
  fs::resize_file(replay_path(snapshot), 300);
  EXPECT_TRUE(any(verdict_page(open(dir())).facts, ".replay.h5"));
  fs::remove(replay_path(snapshot));
  EXPECT_TRUE(any(verdict_page(open(dir())).facts, ".replay.h5: is not here"));
}

TEST_F(Known, ACutReplayFileIsNamedThoughTheRecordingHasItsValues) {
  const std::string snapshot = testing::write_run(dir());
  std::ofstream(replay_path(snapshot)) << "cut";
  EXPECT_TRUE(any(verdict_page(open(dir())).facts, ".replay.h5"));
}

TEST_F(Known, ADirectoryThatCannotBeReadIsNotCalledEmpty) {
  testing::write_run(dir());
  fs::permissions(dir(), fs::perms::none);
  const bool root = geteuid() == 0;
  if (root) {
    fs::permissions(temp_.path(), fs::perms::all);
    ASSERT_EQ(seteuid(65534), 0);
  }
  const Result<Session> session = Session::open(dir());
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  fs::permissions(dir(), fs::perms::owner_all);
  ASSERT_FALSE(session);
  EXPECT_TRUE(says(session.error().text(), "can't be read")) << session.error().text();
}

TEST_F(Known, ThePathIsThatOfTheChosenOp) {
  const Session session = on(testing::fixture_doc());
  const SnapshotDoc& doc = session.incident()->doc;
  const TraceView& trace = session.incident()->trace;
  const TraceGraph graph(doc);
  const OpId first{0}, culprit{doc.culprit.op};
  for (const OpId from : {first, culprit}) {
    const TraceView::Path path = trace.path_from(from);
    ASSERT_TRUE(path.to_loss) << from.row();
    EXPECT_EQ(path.ops.front(), from);
    EXPECT_EQ(path.ops.back(), graph.producer(TensorId{doc.loss}, graph.end()));
    for (std::size_t i = 0; i + 1 < path.ops.size(); ++i) {
      const std::vector<OpId>& readers = trace.consumers(path.ops[i]);
      EXPECT_NE(std::ranges::find(readers, path.ops[i + 1]), readers.end());
    }
  }
  for (const OpId op : trace.ops()) {
    if (trace.line(op).phase != Phase::backward) continue;
    const TraceView::Path path = trace.path_from(op);
    EXPECT_FALSE(path.to_loss);
    for (const OpId step : path.ops) EXPECT_NE(trace.line(step).phase, Phase::optimizer);
  }
}

TEST_F(Known, APictureMakesNoFolder) {
  EXPECT_TRUE(folder_is_there(temp_.path() + "/x.png"));
  EXPECT_TRUE(folder_is_there("x.png"));
  const Status nowhere = folder_is_there(temp_.path() + "/nodir/x.png");
  ASSERT_FALSE(nowhere);
  EXPECT_TRUE(says(nowhere.error().text(), "there is no folder")) << nowhere.error().text();
}

TEST_F(Known, ARunThatIsOverIsNotFollowed) {
  testing::write_run(dir());
  EXPECT_TRUE(strip_of(open(dir())).over);
  Manifest manifest = *read_manifest(dir());
  manifest.status = "running";
  ASSERT_TRUE(write_manifest(dir(), manifest));
  EXPECT_FALSE(strip_of(open(dir())).over);
}

/// "0.06 to 0.002" said neither that they are the first and the last, nor that others are larger.
TEST_F(Known, TheFirstAndTheLastValueAreCalledSo) {
  testing::write_run(dir());
  Session session = open(dir());
  const Statistic s = session.selection().statistic;
  const Pyramid& series = session.history().series(s, 0);
  const PageTable table = info_of(Panel::norms).page(session, Extent::glance).tables.at(0);
  const auto cell = [&](const char* title) {
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (table.columns[c].title == title) return table.rows.at(0).cells.at(c);
    return std::string("no column ") + title;
  };
  EXPECT_EQ(cell("first"), short_number(series[0]));
  std::size_t last = series.size() - 1;
  while (!std::isfinite(series[last])) --last;
  EXPECT_EQ(cell("last finite"), short_number(series[last]));
  EXPECT_EQ(cell("largest"), short_number(series.query(0, series.size()).max));
}

TEST_F(Known, NormsOfLayersAfterClippingAreCalledSo) {
  std::vector<SeriesTable> tables = testing::fixture_history(20);
  const SeriesTable& layers = *testing::column_of(tables, "grad_norm", "head").table;
  const auto whole = testing::column_of(tables, "scalars", "grad_norm");
  const auto put = [&](double factor) {
    for (std::size_t row = 0; row < 20; ++row) {
      double squares = 0;
      for (std::size_t c = 0; c < layers.columns.size(); ++c)
        if (layers.columns[c] != "step")
          squares += std::pow(layers.values[row * layers.columns.size() + c], 2);
      whole[row] = std::sqrt(squares) * (row % 2 == 0 ? factor : 1);
    }
    testing::write_series(dir(), tables);
    Session session = open(dir());
    session.select_statistic(Statistic::gradient);
    return panel_text(session, Panel::norms);
  };
  EXPECT_FALSE(says(put(1), "clipped"));
  EXPECT_TRUE(says(put(5), "norms of layers are of clipped gradients")) << put(5);
}

}  // namespace
}  // namespace nanquest::viewer
