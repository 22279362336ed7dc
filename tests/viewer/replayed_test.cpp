// The step as replay ran it again: columns of fp32 and fp64 beside what is on record.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/writer.h"
#include "replay/verdict/replayed_paths.h"
#include "tests/viewer/fixture.h"
#include "viewer/model/op_order.h"
#include "viewer/model/session.h"
#include "viewer/panels/registry.h"
#include "viewer/report/report.h"

namespace nanquest::viewer {
namespace {

using testing::TempDir;

/// A replay file of the fixture's step: op 0 gives 2 and is 1e-3 off, the culprit is finite in fp32 and fp64
/// (7e4), and an op before it, `far`, is off by half of its largest value.
class ReplayedRuns : public ::testing::Test {
 protected:
  void write(std::size_t rows, bool shorter = false) {
    auto writer = SnapshotWriter::create(replay_path(snapshot_));
    ASSERT_TRUE(writer) << writer.error().text();
    const auto put = [&](const std::string& path, DType type, const void* values, std::size_t n) {
      const std::int64_t shape[] = {static_cast<std::int64_t>(n)};
      ASSERT_TRUE(writer->write_tensor(path, {type, shape, values}));
    };
    for (const std::string run : kReplayedRuns) {
      const bool recorded = run == "as_recorded";
      std::vector<double> amax(rows, 1), off(rows, 1e-4);
      std::vector<std::int64_t> zeros(rows, 0), inf(rows, 0);
      amax[0] = 2, off[0] = 2e-3;
      off[far_] = recorded ? 0 : 0.5;
      amax[culprit_] = recorded ? 6e4 : 7e4;
      inf[culprit_] = recorded ? 17 : 0;
      put(replayed_column(run, "amax"), DType::float64, amax.data(), shorter ? rows - 1 : rows);
      put(replayed_column(run, "nan"), DType::int64, zeros.data(), rows);
      put(replayed_column(run, "inf"), DType::int64, inf.data(), rows);
      put(replayed_column(run, "zero"), DType::int64, zeros.data(), rows);
      if (!recorded) put(replayed_column(run, "off"), DType::float64, off.data(), rows);
      const float value = recorded ? std::numeric_limits<float>::infinity() : 7e4f;
      put(replayed_values(static_cast<std::int32_t>(culprit_), "output", run), DType::float32, &value, 1);
    }
    SnapshotDoc doc;
    doc.step = testing::kBadStep;
    ASSERT_TRUE(writer->write_doc(doc));
    ASSERT_TRUE(writer->commit());
  }
  void SetUp() override {
    snapshot_ = testing::write_run(temp_.path() + "/story");
    const SnapshotDoc doc = testing::fixture_doc();
    culprit_ = static_cast<std::size_t>(doc.culprit.op);
    rows_ = doc.ops.size();
    far_ = culprit_ - 1;
  }
  Session open() {
    Result<Session> session = Session::open(snapshot_);
    EXPECT_TRUE(session) << session.error().text();
    return std::move(session).value();
  }

  TempDir temp_;
  std::string snapshot_;
  std::size_t rows_ = 0, culprit_ = 0, far_ = 0;
};

TEST_F(ReplayedRuns, StandBesideTheRecordedStep) {
  write(rows_);
  Session session = open();
  const std::optional<Replayed>& again = session.incident()->replayed;
  ASSERT_TRUE(again);
  EXPECT_DOUBLE_EQ(again->fp64.at(OpId{0})->relative(), 1e-3);
  EXPECT_EQ(off_text(again->recorded.at(OpId{0}), again->fp64.at(OpId{0})), "0.001");
  EXPECT_EQ(replayed_text(again->recorded.at(OpId{culprit_})), "17 Inf");
  EXPECT_EQ(replayed_text(again->fp32.at(OpId{culprit_})), "7e+04");
  EXPECT_EQ(off_text(again->recorded.at(OpId{culprit_}), again->fp64.at(OpId{culprit_})),
            "finite in fp64 alone");
  EXPECT_TRUE(far_off(again->recorded.at(OpId{far_}), again->fp64.at(OpId{far_})));
  EXPECT_FALSE(far_off(again->recorded.at(OpId{0}), again->fp64.at(OpId{0})));
  EXPECT_EQ(again->first_divergence(), OpId{culprit_}) << "a change of finiteness comes before a distance";
  const std::string text = panel_text(session, Panel::trace);
  EXPECT_NE(text.find("first divergence from fp64: op " + std::to_string(culprit_)), std::string::npos)
      << text;
  EXPECT_NE(text.find("max |x| in fp32"), std::string::npos);
  session.select_op(static_cast<std::int32_t>(culprit_));
  const std::string op = std::to_string(culprit_);
  const PanelPage page = info_of(Panel::trace).page(session, Extent::whole);
  ASSERT_FALSE(page.tables.empty());
  EXPECT_EQ(page.tables[0].title, "op " + op + " and its producers, recorded and replayed");
  ASSERT_GE(page.tables[0].rows.size(), 2u);
  const std::vector<std::string>& output = page.tables[0].rows.back().cells;
  EXPECT_TRUE(output[0].starts_with("output, op " + op)) << output[0];
  EXPECT_EQ(std::vector<std::string>(output.begin() + 1, output.end()),
            (std::vector<std::string>{"17 Inf", "7e+04", "7e+04", "finite in fp64 alone"}));
  EXPECT_NE(report_html(session, {}, "").find(page.tables[0].title), std::string::npos);
  const Result<std::string> csv = panel_csv(session, Panel::trace);
  ASSERT_TRUE(csv);
  EXPECT_NE(csv->find("fp64_amax,fp64_nan,fp64_inf,fp64_zero,fp64_off"), std::string::npos);
  EXPECT_NE(csv->find(",2,0,0,0,0.002,2,0,0,0,0.002\n"), std::string::npos) << *csv;
}

TEST_F(ReplayedRuns, OpsAreSortedByAnyColumn) {
  write(rows_);
  const Session session = open();
  const OpenIncident& incident = *session.incident();
  std::vector<OpId> ops = incident.trace.filter("");
  const std::vector<OpId> as_run = ops;
  sort_ops(incident, {TraceColumn::off, true}, ops);
  EXPECT_EQ(ops[0], OpId{culprit_}) << "another finiteness is further than any distance";
  EXPECT_EQ(ops[1], OpId{far_});
  EXPECT_EQ(ops[2], OpId{0});
  sort_ops(incident, {TraceColumn::mark, false}, ops);
  EXPECT_EQ(ops[0], OpId{culprit_});
  EXPECT_EQ(incident.trace.mark(ops.back()), OpMark::none);
  for (const bool largest_first : {false, true}) {
    sort_ops(incident, {TraceColumn::written, largest_first}, ops);
    bool missing = false;
    double before = largest_first ? HUGE_VAL : 0;
    for (const OpId op : ops) {
      const ValueRange range = incident.trace.line(op).written;
      if (range.none_finite()) continue;
      missing = missing || !range.has_amax;
      EXPECT_EQ(missing, !range.has_amax) << "ops without a number come last";
      if (missing) continue;
      EXPECT_TRUE(largest_first ? range.amax <= before : range.amax >= before) << op.row();
      before = range.amax;
    }
  }
  sort_ops(incident, {TraceColumn::name, false}, ops);
  EXPECT_TRUE(std::ranges::is_sorted(ops, {}, [&](OpId op) {
    return std::pair(incident.trace.line(op).name, op);
  })) << "equal names in the order in which they ran";
  sort_ops(incident, {}, ops);
  EXPECT_EQ(ops, as_run);
}

TEST_F(ReplayedRuns, TheCulpritsValuesCanBeLookedAt) {
  write(rows_);
  Session session = open();
  const std::string path = replayed_values(static_cast<std::int32_t>(culprit_), "output", "fp64");
  ASSERT_TRUE(session.incident()->holds(path));
  session.select_tensor(path);
  ASSERT_NE(session.tensor_detail(), nullptr) << session.tensor_error();
  EXPECT_EQ(session.tensor_detail()->scan.amax, 7e4f);
}

TEST_F(ReplayedRuns, ColumnsOfAnotherLengthAreRefused) {
  write(rows_, /*shorter=*/true);
  Session session = open();
  EXPECT_FALSE(session.incident()->replayed);
  EXPECT_NE(session.incident()->replay_error.find("is no column of"), std::string::npos);
}

TEST_F(ReplayedRuns, AFileOfAnOlderVersionHasNone) {
  Session session = open();
  EXPECT_FALSE(session.incident()->replayed);
  EXPECT_EQ(panel_text(session, Panel::trace).find("fp64"), std::string::npos);
}

}  // namespace
}  // namespace nanquest::viewer
