// Finite steps far out of their band: what counts as one excursion, what is said, and how many have files.
#include "probe/attach/excursions.h"

#include <gtest/gtest.h>

namespace nanquest::attach {
namespace {

BandNews news(BandNews::Kind kind, std::int64_t since, bool loss = true, bool norm = false) {
  BandNews news;
  news.kind = kind;
  news.since = since;
  news.loss = loss;
  news.norm = norm;
  return news;
}

AttachOptions options(AttachOptions::OnSpike on, int max_incidents = 8) {
  AttachOptions options;
  options.on_spike = on;
  options.probe.max_incidents = max_incidents;
  return options;
}

TEST(Excursions, CountOnceEvenIfTheLossDoesNotComeBack) {
  Excursions excursions(options(AttachOptions::OnSpike::record));
  EXPECT_FALSE(excursions.heeds(news(BandNews::inside, 0)));
  EXPECT_TRUE(excursions.heeds(news(BandNews::spike, 5)));
  EXPECT_TRUE(excursions.begins(news(BandNews::spike, 5)));
  EXPECT_FALSE(excursions.begins(news(BandNews::diverged, 5)));
  EXPECT_TRUE(excursions.begins(news(BandNews::spike, 90)));
  EXPECT_TRUE(excursions.begins(news(BandNews::diverged, 200))) << "it climbed without a spike";
  EXPECT_EQ(excursions.count(), 3);
  EXPECT_FALSE(Excursions(options(AttachOptions::OnSpike::off)).heeds(news(BandNews::spike, 5)));
  EXPECT_FALSE(excursions.skips());
  EXPECT_TRUE(Excursions(options(AttachOptions::OnSpike::skip)).skips());
}

TEST(Excursions, HaveAQuarterOfTheFilesAndAtLeastOne) {
  for (const auto& [allowed, files] : {std::pair{8, 2}, {3, 1}, {1, 1}, {0, 0}}) {
    Excursions excursions(options(AttachOptions::OnSpike::record, allowed));
    while (excursions.has_file_left() && excursions.files() < 10) excursions.wrote_file();
    EXPECT_EQ(excursions.files(), files) << allowed;
  }
}

TEST(Excursions, SayWhichFigureIsOut) {
  const Facts both = Excursions::facts(news(BandNews::spike, 5, true, true), 5, 7.5, 80, {});
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].kind, Fact::spike);
  EXPECT_EQ(both[0].step, 5);
  EXPECT_EQ(both[0].value, 7.5);
  EXPECT_EQ(both[1].kind, Fact::spike_too);
  EXPECT_EQ(both[1].value, 80);
  const Facts norm = Excursions::facts(news(BandNews::spike, 5, false, true), 5, 7.5, 80, {});
  ASSERT_EQ(norm.size(), 1u);
  EXPECT_EQ(norm[0].kind, Fact::spike);
  EXPECT_EQ(norm[0].name, "the gradient norm");
  const Facts gone = Excursions::facts(news(BandNews::diverged, 3), 70, 7.5, 80, {});
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].kind, Fact::diverged);
  EXPECT_EQ(gone[0].since, 3);
  EXPECT_EQ(gone[0].step, 70);
}

}  // namespace
}  // namespace nanquest::attach
