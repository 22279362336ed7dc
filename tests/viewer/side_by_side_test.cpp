// The culprit's values as recorded, in fp32 and in fp64, held against a comparison of all elements.
#include "viewer/model/side_by_side.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "probe/numerics/format.h"
#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/writer.h"
#include "tests/viewer/story.h"
#include "viewer/panels/registry.h"
#include "viewer/report/report.h"

namespace nanquest::viewer {
namespace {

class CulpritSide : public testing::Story {
 protected:
  static constexpr std::int64_t kRows = 40, kColumns = 50;

  void SetUp() override {
    snapshot_ = testing::write_run(dir(), {.incidents = 1});
    op_ = testing::fixture_doc().culprit.op;
    std::mt19937 random(3);
    std::normal_distribution<double> normal(0, 30000);
    for (std::size_t i = 0; i < static_cast<std::size_t>(kRows * kColumns); ++i) {
      fp64_.push_back(normal(random));
      fp32_.push_back(static_cast<float>(fp64_.back()));
      half_.push_back(static_cast<std::uint16_t>(encode(Format::fp16, fp64_.back())));
      recorded_.push_back(decode(Format::fp16, half_.back()));
    }
    fp64_[7] = fp32_[7] = NAN;  // and finite as recorded
  }
  void write(bool with_fp64 = true, std::int64_t columns = kColumns) {
    auto writer = SnapshotWriter::create(replay_path(snapshot_));
    ASSERT_TRUE(writer) << writer.error().text();
    const std::int64_t shape[] = {kRows, kColumns}, other[] = {kRows * kColumns / columns, columns},
                       one[] = {1};
    const auto put = [&](const char* name, const char* run, DType type, std::span<const std::int64_t> sizes,
                         const void* data) {
      ASSERT_TRUE(
          writer->write_tensor(replayed_values(op_, name, run), {type, {sizes.begin(), sizes.end()}, data}));
    };
    put("output", "as_recorded", DType::float16, shape, half_.data());
    put("output", "fp32", DType::float32, shape, fp32_.data());
    if (with_fp64) put("output", "fp64", DType::float64, other, fp64_.data());
    const float weight = 2;
    put("mat2", "as_recorded", DType::float32, one, &weight);
    SnapshotDoc doc;
    doc.step = testing::kBadStep;
    ASSERT_TRUE(writer->write_doc(doc));
    ASSERT_TRUE(writer->commit());
  }
  /// Positions of all elements, the worst first.
  std::vector<std::uint64_t> sorted(const std::vector<double>& other) const {
    std::vector<std::uint64_t> order(recorded_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto badness = [&](std::uint64_t i) {
      if (std::isfinite(recorded_[i]) != std::isfinite(other[i])) return HUGE_VAL;
      return std::isfinite(recorded_[i]) ? std::abs(recorded_[i] - other[i]) : -1;
    };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return badness(a) > badness(b); });
    return order;
  }
  std::string path(const char* name, const char* run) const { return replayed_values(op_, name, run); }

  std::string snapshot_;
  std::int32_t op_ = 0;
  std::vector<double> fp64_, recorded_;
  std::vector<float> fp32_;
  std::vector<std::uint16_t> half_;
};

TEST_F(CulpritSide, TheWorstElementsComeFirst) {
  write();
  Session session = open(dir());
  EXPECT_TRUE(session.culprit_waits());
  EXPECT_EQ(session.read_culprit_side(), nullptr);
  const SideBySide* side = session.culprit_side();
  ASSERT_NE(side, nullptr);
  EXPECT_FALSE(session.culprit_waits());
  EXPECT_EQ(session.read_culprit_side(), side);
  ASSERT_EQ(side->error, "");
  EXPECT_EQ(side->name, "output");
  EXPECT_EQ(side->total, recorded_.size());
  const std::vector<std::uint64_t> order = sorted(fp64_);
  ASSERT_EQ(side->rows.size(), kMostRows);
  std::uint64_t changed = 0;
  double largest = 0;
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    changed += std::isfinite(recorded_[i]) != std::isfinite(fp64_[i]);
    if (std::isfinite(recorded_[i]) && std::isfinite(fp64_[i]))
      largest = std::max(largest, std::abs(recorded_[i] - fp64_[i]));
  }
  EXPECT_GT(changed, 10u);
  EXPECT_EQ(side->changed, changed);
  EXPECT_EQ(side->largest, largest);
  for (std::size_t i = 0; i < kMostRows; ++i) {
    const SideBySide::Row& row = side->rows[i];
    const std::size_t at = order[i];
    ASSERT_EQ(row.element, at) << i;
    EXPECT_EQ(row.position, "[" + std::to_string(at / kColumns) + ", " + std::to_string(at % kColumns) + "]");
    EXPECT_EQ(row.values[0], recorded_[at]);
    EXPECT_EQ(row.changes, i < changed);
    if (at != 7) {
      EXPECT_EQ(row.values[1], static_cast<double>(fp32_[at]));
      EXPECT_EQ(row.values[2], fp64_[at]);
    }
    if (!row.changes) {
      EXPECT_EQ(row.difference, recorded_[at] - fp64_[at]);
    }
  }
}

TEST_F(CulpritSide, TheSelectedTensorDecidesWhichValues) {
  write();
  Session session = open(dir());
  const std::vector<CulpritValues> values = culprit_values(*session.incident());
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].name, "mat2") << "inputs first";
  EXPECT_EQ(values[0].paths[0], path("mat2", "as_recorded"));
  EXPECT_EQ(values[0].paths[2], "");
  EXPECT_EQ(values[1].paths[1], path("output", "fp32"));
  EXPECT_EQ(shown_values(values, path("mat2", "as_recorded")), "mat2");
  EXPECT_EQ(shown_values(values, "parameters/head.weight"), "output");
  EXPECT_EQ(shown_values({}, "parameters/head.weight"), "");
  EXPECT_TRUE(missing_text(*session.incident(), values)
                  .starts_with("some are not held by the file: replay makes them"));
  session.select_tensor(path("mat2", "as_recorded"));
  EXPECT_TRUE(session.culprit_waits());
  ASSERT_NE(session.culprit_side(), nullptr);
  EXPECT_EQ(session.culprit_side()->rows.size(), 1u);
  EXPECT_EQ(session.culprit_side()->rows[0].values[0], 2);
  EXPECT_TRUE(std::isnan(session.culprit_side()->rows[0].difference)) << "nothing to hold it against";
  EXPECT_EQ(difference_text(*session.culprit_side()), "");
}

TEST_F(CulpritSide, WithoutFp64ItIsHeldAgainstFp32) {
  write(/*with_fp64=*/false);
  Session session = open(dir());
  const SideBySide* side = session.culprit_side();
  ASSERT_NE(side, nullptr);
  EXPECT_FALSE(side->held[2]);
  const std::vector<double> fp32(fp32_.begin(), fp32_.end());
  EXPECT_EQ(side->rows[0].element, sorted(fp32)[0]);
  EXPECT_TRUE(says(difference_text(*side), "in only one of recorded and fp32")) << difference_text(*side);
}

TEST_F(CulpritSide, OtherShapesAreRefusedInWords) {
  write(true, kColumns / 2);
  Session session = open(dir());
  ASSERT_NE(session.culprit_side(), nullptr);
  EXPECT_TRUE(says(session.culprit_side()->error, "has another shape than")) << session.culprit_side()->error;
  EXPECT_TRUE(session.culprit_side()->rows.empty());
  EXPECT_FALSE(session.culprit_waits()) << "it is not tried again and again";
}

TEST_F(CulpritSide, WithoutAReplayTheWayOutIsNamed) {
  Session session = open(dir());
  EXPECT_EQ(session.culprit_side(), nullptr);
  EXPECT_FALSE(session.culprit_waits());
  const PanelPage page = info_of(Panel::tensor).page(session, Extent::glance);
  EXPECT_TRUE(std::ranges::any_of(page.facts, [](const Fact& fact) {
    return says(fact.text, "not held by the file: replay makes them (nanquest-replay SNAPSHOT)");
  }));
}

TEST_F(CulpritSide, TextCsvAndReportHaveIt) {
  write();
  Session session = open(dir());
  const std::string title = "output of op " + std::to_string(op_) + ", the worst elements first";
  const std::string text = panel_text(session, Panel::tensor);
  EXPECT_TRUE(says(text, title)) << text;
  EXPECT_TRUE(says(text, "are finite in only one of recorded and fp64")) << text;
  EXPECT_TRUE(says(report_html(session, {}, ""), title));
  EXPECT_TRUE(says(report_markdown(session), title));
  const Result<std::string> csv = panel_csv(session, Panel::tensor);
  ASSERT_TRUE(csv);
  const std::uint64_t worst = sorted(fp64_)[0];
  const std::string before = "values/op " + std::to_string(op_) + "/output,";
  EXPECT_TRUE(says(*csv, before + "as_recorded," + std::to_string(worst) + ","));
  EXPECT_TRUE(says(*csv, before + "fp64," + std::to_string(worst) + ","));
  EXPECT_TRUE(says(*csv, before + "difference," + std::to_string(worst) + ",nan"));
}

}  // namespace
}  // namespace nanquest::viewer
