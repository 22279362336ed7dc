// Losses of rehearsed runs, columns that a program adds later, modules that contain others.
#include "replay/verdict/json.h"
#include "viewer/model/rehearsed.h"

#include <cmath>
#include <fstream>

#include "tests/viewer/story.h"
#include "viewer/model/links.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

constexpr double kCured = 2.125, kGrown = 1e9;

class Rehearsed : public testing::OpenStory {
 protected:
  /// The unchanged run and a placebo go bad, half the learning rate does not.
  void rehearse(std::int32_t rank = 0) {
    Rehearsal rehearsal;
    rehearsal.step = testing::kBadStep;
    rehearsal.rank = rank;
    const auto run = [&](RehearsedKind kind, const char* change, int steps, double loss,
                         std::optional<std::int64_t> bad) {
      RehearsedRun made;
      made.kind = kind;
      made.change = change;
      made.first_step = 120;
      for (int i = 0; i < steps; ++i) made.losses.push_back(loss - 0.001 * i);
      made.failed_step = bad;
      rehearsal.runs.push_back(made);
    };
    run(RehearsedKind::unchanged, "", 11, kGrown, 131);
    run(RehearsedKind::placebo, "the last bit of head.weight[1], seed 2", 12, kGrown, 132);
    run(RehearsedKind::change, "lr=*0.5", 100, kCured, std::nullopt);
    judge(rehearsal);
    std::ofstream(rehearsal_path(snapshot_)) << to_json(rehearsal);
  }
  static const TimelineCurve& loss_of(const std::vector<TimelineCurve>& curves) { return curves.front(); }
};

TEST_F(Rehearsed, LossesOfEveryRunStandBesideThoseOfTheRun) {
  EXPECT_TRUE(session().rehearsed().empty());
  rehearse();
  ASSERT_TRUE(session_->poll()) << "a rehearsal that comes later is news";
  ASSERT_EQ(session().rehearsed().size(), 3u);
  const auto curves = timeline_curves(session());
  const TimelineCurve& loss = loss_of(curves);
  ASSERT_EQ(loss.name, "loss");
  ASSERT_EQ(loss.rehearsed.size(), 3u);
  EXPECT_TRUE(loss.rehearsed[2]->cures);
  EXPECT_EQ((*loss.rehearsed[2]->losses())[0], kCured);
  EXPECT_EQ(loss.rehearsed[2]->history.steps().front(), 120);
  EXPECT_EQ(loss.rehearsed[2]->history.steps().back(), 219);
  EXPECT_LT(loss.low, kCured - 0.099) << "there is room for what cures";
  EXPECT_LT(loss.high, kGrown) << "and what goes bad does not flatten the others";
  for (const Panel panel : {Panel::timeline, Panel::verdict}) {
    const std::string text = panel_text(*session_, panel);
    EXPECT_TRUE(says(text, "lr=*0.5")) << text;
    EXPECT_TRUE(says(text, "bad at step 131")) << text;
    EXPECT_TRUE(says(text, "good to step 219: cures it")) << text;
  }
  const std::string csv = *panel_csv(*session_, Panel::timeline);
  EXPECT_TRUE(says(csv, "\"loss rehearsed, lr=*0.5\"") || says(csv, "loss rehearsed, lr=*0.5")) << csv;
  EXPECT_TRUE(says(csv, "\n219,")) << "steps that the run never reached";
}

TEST_F(Rehearsed, OneOfAnotherRankOrDamagedIsNotDrawn) {
  rehearse(3);
  (void)session_->poll();
  EXPECT_TRUE(session().rehearsed().empty());
  std::ofstream(rehearsal_path(snapshot_)) << "{ not json";
  const Session again = open(dir());
  EXPECT_TRUE(again.rehearsed().empty());
  const auto complaints = again.complaints();
  EXPECT_TRUE(
      std::ranges::any_of(complaints, [](const std::string& c) { return says(c, ".rehearsal.json"); }));
}

TEST_F(Rehearsed, AColumnThatIsToldLaterIsNoFinding) {
  const double nan = std::nan("");
  SeriesTable table{"scalars", {"step", "loss", "eval_loss"}, {}};
  for (int i = 0; i < 40; ++i)
    table.values.insert(table.values.end(), {i * 1.0, i == 3 ? nan : 2.0, i < 10 || i == 25 ? nan : 1.5});
  testing::write_series(dir(), {table});
  Session told = open(dir());
  const auto curves = timeline_curves(told);
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].given_from, 0u) << "the probe tells the loss in every row";
  EXPECT_EQ(curves[1].given_from, 10u);
  EXPECT_EQ(values_at(told.history(), *curves[1].values, 4, curves[1].given_from), "");
  EXPECT_EQ(values_at(told.history(), *curves[1].values, 25, curves[1].given_from), "NaN");
  const std::string text = panel_text(told, Panel::timeline);
  EXPECT_TRUE(says(text, "1 NaN (first at step 25)")) << text;
  EXPECT_FALSE(says(text, "11 NaN")) << text;
  const std::string csv = *panel_csv(told, Panel::timeline);
  EXPECT_TRUE(says(csv, "\n9,2,,")) << csv;
  EXPECT_TRUE(says(csv, "\n25,2,nan,")) << csv;
  EXPECT_TRUE(says(csv, "\n3,nan,,")) << csv;
}

TEST_F(Rehearsed, AModuleThatHoldsOthersIsALink) {
  const Names names(session());
  const auto child = names.word("blocks.2.mlp");
  ASSERT_TRUE(child);
  EXPECT_TRUE(names.word("blocks.2"));
  EXPECT_FALSE(names.word("blocks")) << "a word like any other";
  EXPECT_FALSE(names.word("blocks.9"));
}

}  // namespace
}  // namespace nanquest::viewer
