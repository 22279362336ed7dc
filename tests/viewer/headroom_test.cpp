// Headroom and forecasts of an attached run, as numbers, text and CSV; and that a run without them has none.
#include "viewer/model/headroom.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/viewer/story.h"
#include "tests/viewer/watched.h"
#include "viewer/model/search.h"
#include "viewer/model/timeline.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

using testing::kFar;
using testing::kNear;

std::vector<double> values_of(const Pyramid& series) {
  std::vector<double> values;
  for (std::size_t i = 0; i < series.size(); ++i) values.push_back(series[i]);
  return values;
}

class HeadroomOf : public testing::Story {
 protected:
  Session watched() {
    testing::write_run(dir());
    testing::watch(dir());
    return open(dir());
  }
};

TEST_F(HeadroomOf, TheLeastOfAllPlacesAndItsPlace) {
  const Session session = watched();
  const Headroom& headroom = session.headroom();
  EXPECT_EQ(headroom.history().steps(), testing::kWatched);
  const Pyramid& least = *headroom.bits("");
  EXPECT_EQ(values_of(least), (std::vector<double>{9, 5.5, 1.5, 0.25}));
  EXPECT_EQ(headroom.nearest(2), kFar);
  EXPECT_EQ(headroom.nearest(3), kNear);
  ASSERT_EQ(headroom.places().size(), 2u);
  EXPECT_EQ(headroom.places()[0].name, kNear);
  EXPECT_EQ(headroom.places()[0].step, 130);
  EXPECT_EQ(headroom.places()[1].bits, 1.5);
  EXPECT_EQ(headroom.places()[1].zero, 0.5);
  EXPECT_EQ(headroom.bits("no such place"), nullptr);
  EXPECT_EQ(module_of_place(kNear), "blocks.3.mlp.up");
  EXPECT_EQ(module_of_place("aten::mm (forward, float16)"), "");
}

TEST_F(HeadroomOf, NothingButZerosIsNoHeadroom) {
  const Headroom none({{"a", {1, 2}, {0, 0}, {HUGE_VAL, HUGE_VAL}, {}, {}}});
  EXPECT_TRUE(none.empty());
  const Headroom short_file({{"a", {1}, {2}, {3}, {}, {}}});
  EXPECT_TRUE(std::isnan(short_file.places().at(0).zero)) << "no share is on record";
}

TEST_F(HeadroomOf, ItsCurveIsThatOfThePlaceThatWasChosen) {
  Session session = watched();
  const auto curve = [&] { return timeline_curves(session).back(); };
  EXPECT_EQ(curve().title, "Least headroom, bits");
  EXPECT_LT(curve().low, 0) << "the end of the format is in view";
  EXPECT_EQ(curve().history->rows(), 4u);
  const std::vector<Hit> hits = search(session, "blocks.3.mlp.up place");
  ASSERT_EQ(hits.size(), 1u);
  follow(session, hits[0].link);
  EXPECT_EQ(session.selection().place, kNear);
  EXPECT_EQ(session.selection().layer, "blocks.3.mlp.up");
  EXPECT_EQ((*curve().values)[2], 2);
  const Selection chosen = session.selection();
  session.select_place("");
  EXPECT_EQ(curve().title, "Least headroom, bits");
  session.restore(chosen);
  EXPECT_EQ(session.selection().place, kNear);
}

TEST_F(HeadroomOf, WordsLeadToThePlace) {
  const Session session = watched();
  const Names names(session);
  const std::vector<Span> spans = names.linked(std::string("then ") + kNear + " grew at step 131");
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[1].text, kNear);
  EXPECT_EQ(*spans[1].link, Link::to_place(kNear));
  EXPECT_EQ(*spans[3].link, Link::to_step(131));
}

TEST_F(HeadroomOf, TextAndCsvHoldCurvePlacesAndForecasts) {
  Session session = watched();
  const std::string text = panel_text(session, Panel::timeline);
  EXPECT_TRUE(says(text, "forecasts")) << text;
  EXPECT_TRUE(says(text, std::string("step 100: ") + kNear + " reaches the end of fp16")) << text;
  EXPECT_TRUE(says(text, "Least headroom, bits      9         0.25      0.25        9")) << text;
  EXPECT_TRUE(says(text, "12.5 %")) << "zeros";
  EXPECT_TRUE(says(text, "6.25 %")) << "subnormals";
  session.select_place(kFar);
  const std::string csv = *panel_csv(session, Panel::timeline);
  const auto line = [&](const std::string& step) {
    const std::size_t at = csv.find("\n" + step + ",") + 1;
    return csv.substr(at, csv.find('\n', at) - at);
  };
  EXPECT_TRUE(says(csv, std::string("least_headroom_bits,least_headroom_place,\"headroom_bits:") + kFar));
  EXPECT_TRUE(says(line("50"), std::string(",5.5,\"") + kNear + "\",,")) << line("50");
  EXPECT_TRUE(says(line("100"), std::string(",1.5,\"") + kFar + "\",1.5,\"" + kNear + " reaches"))
      << line("100");
  EXPECT_TRUE(line("60").ends_with(",,,,")) << line("60");
}

TEST_F(HeadroomOf, ARunWithoutThemShowsNothingOfIt) {
  testing::write_run(dir());
  Session session = open(dir());
  EXPECT_TRUE(session.headroom().empty());
  EXPECT_EQ(shown_lanes(timeline_events(session)), 3);
  for (const char* word : {"headroom", "forecast"}) {
    EXPECT_FALSE(says(panel_text(session, Panel::timeline), word)) << word;
    EXPECT_FALSE(says(*panel_csv(session, Panel::timeline), word)) << word;
  }
}

TEST_F(HeadroomOf, ComesWhileTheRunIsShownAndADamagedFileIsSaid) {
  testing::write_run(dir());
  Session session = open(dir());
  testing::watch(dir());
  ASSERT_TRUE(session.poll());
  EXPECT_EQ(session.headroom().places().size(), 2u);
  std::filesystem::resize_file(ranges_path(dir(), 0), 100);
  const Session cut = open(dir());
  EXPECT_TRUE(cut.headroom().empty());
  EXPECT_FALSE(cut.headroom_error().empty());
  ASSERT_EQ(cut.complaints().size(), 1u);
  EXPECT_TRUE(says(cut.complaints()[0], "ranges.r0.h5"));
}

}  // namespace
}  // namespace nanquest::viewer
