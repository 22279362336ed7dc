// What is selected when the selected thing is gone or has changed.
#include <gtest/gtest.h>

#include <filesystem>

#include "probe/snapshot/run_dir.h"
#include "tests/trace/steps.h"
#include "tests/viewer/damage.h"
#include "tests/viewer/story.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

class Selecting : public testing::Story {
 protected:
  void SetUp() override { snapshot_ = testing::write_run(dir(), {.incidents = 2}); }
  std::string snapshot_;
};

TEST_F(Selecting, ReadingASeriesOfOtherLayersAndStatisticsSelectsAmongThem) {
  Session session = open(dir());
  session.select_layer("head");
  session.select_statistic(Statistic::weight);
  testing::write_series(dir(), {{"scalars", {"step", "loss"}, {0, 1, 1, 1}}, {"grad_norm", {"a"}, {3, 4}}});
  ASSERT_TRUE(session.reload());
  EXPECT_TRUE(session.history().has(session.selection().statistic));
  EXPECT_TRUE(session.selection().layer.empty() || session.has_layer(session.selection().layer))
      << session.selection().layer;
}

/// As under autocast, where an op reads casts of what is stored.
TEST(StoredData, IsTheLargestThatAnOpReadsAlsoThroughCasts) {
  nanquest::testing::Steps s;
  const auto stored = [&](std::int64_t elements, const std::string& name) {
    const SlotId slot = s.slot(elements, SlotOrigin::parameter, name);
    get(s.doc, slot).data = "parameters/" + name;
    return slot;
  };
  using nanquest::testing::whole;
  const SlotId bias = stored(4, "bias"), weight = stored(16, "weight"), x = s.slot(4), y = s.slot(4);
  const SlotId half_bias = s.slot(4), half_weight = s.slot(16), twice = s.slot(16);
  s.op("aten::randn", {}, {whole(x, 4)});
  s.op("aten::_to_copy", {whole(bias, 4)}, {whole(half_bias, 4)});
  s.op("aten::_to_copy", {whole(weight, 16)}, {whole(half_weight, 16)});
  s.op("aten::clone", {whole(half_weight, 16)}, {whole(twice, 16)});
  const OpId read = s.op("aten::addmm", {whole(half_bias, 4), whole(x, 4), whole(twice, 16)}, {whole(y, 4)});
  const OpId after = s.op("aten::relu", {whole(y, 4)}, {whole(s.slot(4), 4)});
  const TraceView view(s.doc);
  EXPECT_EQ(view.stored_data(read), "parameters/weight");
  EXPECT_EQ(view.stored_data(after), "");
}

TEST_F(Selecting, GoingBackToAllLayersKeepsAll) {
  Session session = open(dir());
  session.select_layer("");
  const Selection before = session.selection();
  session.select_layer("head");
  session.restore(before);
  EXPECT_EQ(session.selection(), before);
}

TEST_F(Selecting, AnIncidentWithAnotherHistorySelectsAStatisticOfIt) {
  const std::string run = temp_.path() + "/bare";
  testing::write_run(run, {.series = false, .incidents = 2});
  Session session = open(run);
  session.select_statistic(Statistic::weight_amax);  // none of them has it
  session.select_step(90);
  EXPECT_TRUE(session.history().has(session.selection().statistic));
}

TEST_F(Selecting, GoingBackToWhereNoIncidentWasOpenClosesIt) {
  Session session = open(dir());
  session.restore(Selection{});
  EXPECT_EQ(session.entry(), nullptr);
  EXPECT_EQ(session.incident(), nullptr);
  EXPECT_FALSE(session.verdict());
  Selection other;
  other.incident = 1;
  session.restore(other);
  EXPECT_NE(session.incident(), nullptr);
}

TEST_F(Selecting, ATensorThatCannotBeReadIsOfItsIncidentAlone) {
  testing::spoil_tensor(snapshot_, "parameters/head.weight");
  Session session = open(dir());
  session.select_tensor("parameters/head.weight");
  ASSERT_EQ(session.tensor_detail(), nullptr);
  session.select_step(90);
  session.select_tensor("parameters/head.weight");
  EXPECT_NE(session.tensor_detail(), nullptr) << session.tensor_error();
  session.select_step(131);
  session.select_tensor("parameters/head.weight");
  ASSERT_EQ(session.tensor_detail(), nullptr);
  fs::remove(incident_path(dir(), 90, 0));
  ASSERT_TRUE(session.reload());
  session.select_step(90);
  ASSERT_EQ(session.incident(), nullptr);
  EXPECT_EQ(session.tensor_error(), "") << "it is another incident's";
}

TEST_F(Selecting, CurvesOfASeriesThatIsGoneAreGone) {
  testing::write_series(dir(), testing::fixture_history(200));
  Session session = open(dir());
  ASSERT_EQ(session.history().rows(), 200u);
  fs::remove(series_path(dir(), 0));
  ASSERT_TRUE(session.reload());
  EXPECT_EQ(session.history().rows(), 132u) << "those that the incident brings are left";
}

TEST_F(Selecting, CurvesOfOneRankAreNotShownAsAnothers) {
  testing::write_series(dir(), testing::fixture_history(200));
  testing::write_series(dir(), testing::fixture_history(200), 1);
  fs::resize_file(series_path(dir(), 1), 900);
  fs::copy_file(snapshot_, incident_path(dir(), 140, 1));
  Session session = open(dir());
  session.select_step(131);
  ASSERT_EQ(session.history().rows(), 200u);
  session.select_step(140);
  ASSERT_EQ(session.entry()->files.rank, 1);
  EXPECT_FALSE(session.series_error().empty());
  EXPECT_EQ(session.history().rows(), 132u) << "those of the incident, not of rank 0";
}

}  // namespace
}  // namespace nanquest::viewer
