// Two runs side by side: where they diverge, in words, as CSV, and with the range of steps that they share.
#include "viewer/model/comparison.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/viewer/comparing.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

using testing::Comparing;

TEST_F(Comparing, SaysWhereTheyPart) {
  const Session session = both();
  const Comparison& c = *session.comparison();
  ASSERT_FALSE(c.pairs[0].series.empty());
  EXPECT_EQ(c.pairs[0].series[0].name, "loss");
  EXPECT_EQ(c.pairs[0].series[0].steps, 132U);
  EXPECT_EQ(c.pairs[0].series[0].at, 41.0);
  EXPECT_EQ(c.pairs[0].series[0].there, c.pairs[0].series[0].here + 0.25);
  for (const SeriesDifference& s : c.pairs[0].series) EXPECT_TRUE(s.name == "loss" || !s.at) << s.name;
  EXPECT_TRUE(c.headline().starts_with("story and other differ from step 41 on: loss ")) << c.headline();
  std::map<std::string, std::pair<std::string, std::string>> settings;
  for (const Difference& d : c.settings) settings[d.what] = {d.values[0], d.values[1]};
  EXPECT_EQ(settings, (decltype(settings){{"lr", {"0.006", "0.003"}}, {"seed", {"7", "-"}}}));
  ASSERT_EQ(c.incidents.size(), 2U);
  EXPECT_EQ(c.incidents[0].what, "step 90, rank 0");
  EXPECT_EQ(c.incidents[0].values[1], "-");
  EXPECT_EQ(c.incidents[1].values[0], "FP16_OVERFLOW");
  EXPECT_EQ(c.incidents[1].values[1], "not replayed yet");
}

/// NaN of the same step is no difference, whatever its payload; another sign of zero is one.
TEST_F(Comparing, OfTheSameRunIsEqual) {
  Session session = open(dir());
  ASSERT_TRUE(session.compare_with({dir()}));
  const Comparison& c = *session.comparison();
  EXPECT_TRUE(c.settings.empty());
  for (const SeriesDifference& s : c.pairs[0].series) EXPECT_FALSE(s.at) << s.name;
  EXPECT_NE(c.runs[0], c.runs[1]);
  EXPECT_TRUE(says(c.headline(), "equal in all 132 steps that both have")) << c.headline();
}

/// As after a resume: what was measured before is not known until it is measured again.
TEST_F(Comparing, ASnapshotHasNoSettingsToDiffer) {
  Session session = open(dir());
  ASSERT_TRUE(session.compare_with({other() + "/incidents/step-00000131.r0.h5"}));
  EXPECT_TRUE(session.comparison()->settings.empty());
  EXPECT_FALSE(session.comparison()->pairs[0].series.empty());
}

/// The other run did step 100 twice, the first time with NaN; both did step 60 twice.
TEST_F(Comparing, TextAndCsvSayTheSame) {
  Session session = both();
  const std::string text = panel_text(session, Panel::runs), csv = *panel_csv(session, Panel::runs);
  for (const char* part : {"differ from step 41 on", "0.006", "0.003", "step 90, rank 0", "FP16_OVERFLOW"})
    EXPECT_TRUE(says(text, part)) << part << " in\n" << text;
  EXPECT_TRUE(csv.starts_with("kind,what,story,other\n")) << csv;
  EXPECT_TRUE(says(csv, "setting,lr,0.006,0.003\n")) << csv;
  EXPECT_TRUE(says(csv, "incident,\"step 90, rank 0\",not replayed yet,-\n")) << csv;
  EXPECT_TRUE(says(csv, "series,first difference of loss (step 41),")) << csv;
  const std::string timeline = *panel_csv(session, Panel::timeline);
  EXPECT_TRUE(says(timeline.substr(0, timeline.find('\n')), "loss of other")) << timeline.substr(0, 200);
  EXPECT_TRUE(says(timeline, "\n149,")) << "a step that only the other run has";
  EXPECT_TRUE(says(panel_text(session, Panel::timeline), "series of other"));
}

TEST_F(Comparing, CurvesOfBothHaveRoomInOneRange) {
  const Session session = both();
  const std::vector<TimelineCurve> curves = timeline_curves(session);
  ASSERT_FALSE(curves.empty());
  EXPECT_EQ(curves[0].name, "loss");
  ASSERT_EQ(curves[0].beside.size(), 1U);
  const Extremes there = curves[0].beside[0].values->query(0, curves[0].beside[0].values->size());
  EXPECT_GT(curves[0].high, there.max);
  EXPECT_EQ(session.steps_shown(), (std::pair{0.0, 149.0}));
}

TEST_F(Comparing, FollowsBothAndEndsWhenAsked) {
  Session session = both();
  EXPECT_FALSE(session.poll());
  std::vector<SeriesTable> tables = testing::fixture_history(160);
  testing::write_series(other(), tables);
  EXPECT_TRUE(session.poll());
  EXPECT_EQ(session.others()[0]->history().rows(), 160U);
  EXPECT_FALSE(session.comparison()->pairs[0].series[0].at);
  ASSERT_TRUE(session.reload());
  ASSERT_EQ(session.others().size(), 1U);
  ASSERT_TRUE(session.compare_with({}));
  EXPECT_TRUE(session.others().empty());
  EXPECT_EQ(session.comparison(), nullptr);
  EXPECT_FALSE(says(panel_text(session, Panel::runs), "other"));
}

TEST_F(Comparing, ARunThatWentAwayIsLost) {
  Session session = both();
  std::filesystem::rename(other(), other() + "-moved");
  EXPECT_TRUE(session.poll());
  EXPECT_EQ(session.lost(), "");
  EXPECT_TRUE(says(session.lost_of_any(), "/other is gone")) << session.lost_of_any();
  EXPECT_NE(session.comparison(), nullptr) << "what was read stays";
  EXPECT_FALSE(session.poll());
  std::filesystem::rename(other() + "-moved", other());
  EXPECT_TRUE(session.poll());
  EXPECT_EQ(session.lost_of_any(), "");
}

TEST_F(Comparing, ARunThatIsNotThereIsSaidAndTheOneBeforeStays) {
  Session session = both();
  const Status status = session.compare_with({temp_.path() + "/none"});
  ASSERT_FALSE(status);
  EXPECT_TRUE(says(status.error().text(), "/none: no such file")) << status.error().text();
  EXPECT_EQ(session.others().size(), 1U);
}

}  // namespace
}  // namespace nanquest::viewer
