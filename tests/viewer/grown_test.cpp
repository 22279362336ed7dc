// Appending to a history gives the same as reading all of it, and what was read before does not change.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "probe/snapshot/series.h"
#include "tests/viewer/story.h"
#include "viewer/model/pyramid.h"
#include "viewer/model/words.h"

namespace nanquest::viewer {
namespace {

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

std::vector<double> wild(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(count);
  for (double& v : values) {
    const auto what = random() % 50;
    v = what == 0   ? std::nan("")
        : what == 1 ? std::numeric_limits<double>::infinity()
        : what == 2 ? -std::numeric_limits<double>::infinity()
        : what == 3
            ? 0
            : std::ldexp(static_cast<double>(random() % 1000) - 500, static_cast<int>(random() % 80) - 40);
  }
  return values;
}

Extremes plainly(const std::vector<double>& values, std::size_t first, std::size_t last) {
  Extremes all;
  for (std::size_t i = first; i < std::min(last, values.size()); ++i) all.add(values[i]);
  return all;
}

void expect_same(const Extremes& a, const Extremes& b) {
  EXPECT_EQ(a.min, b.min);
  EXPECT_EQ(a.max, b.max);
  EXPECT_EQ(a.nan, b.nan);
  EXPECT_EQ(a.pos_inf, b.pos_inf);
  EXPECT_EQ(a.neg_inf, b.neg_inf);
}

TEST(Grown, APyramidThatGrowsIsWhatAllOfItGives) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 12; ++seed) {
    std::vector<double> values = wild(random() % 700, seed);
    Pyramid pyramid{values};
    while (values.size() < 3000) {
      const Pyramid before = pyramid;
      const std::size_t size = values.size();
      const std::vector<double> more = wild(random() % 90, static_cast<unsigned>(random()));
      values.insert(values.end(), more.begin(), more.end());
      pyramid.append(more);
      ASSERT_EQ(pyramid.size(), values.size());
      ASSERT_EQ(before.size(), size);
      for (int i = 0; i < 12; ++i) {
        const std::size_t first = random() % (values.size() + 1), last = random() % (values.size() + 70);
        expect_same(pyramid.query(first, last), plainly(values, first, last));
        expect_same(before.query(first, last), plainly(values, first, std::min(last, size)));
      }
      if (!values.empty()) {
        const std::size_t at = random() % values.size();
        EXPECT_TRUE(same(pyramid[at], values[at]));
      }
    }
  }
}

TEST(Grown, TwoThatGrowFromOneDoNotMeet) {
  Pyramid base{wild(100, 1)};
  base.append(wild(10, 2));
  Pyramid one = base, two = base;
  const std::vector<double> first(200, 1.0), second(200, 2.0);
  one.append(first);
  two.append(second);
  EXPECT_EQ(one.query(110, 310).max, 1.0);
  EXPECT_EQ(two.query(110, 310).min, 2.0);
  EXPECT_EQ(base.size(), 110u);
}

class Following : public testing::Story {
 protected:
  void SetUp() override { std::filesystem::create_directories(dir()); }
  std::string series() const { return series_path(dir(), 0); }
  static std::vector<SeriesTable> tables() {
    return {
        {"scalars", {"step", "loss", "gate"}, {}}, {"grad_norm", {"a", "b"}, {}}, {"weight_norm", {"a"}, {}}};
  }
  static void append(SeriesWriter& writer, double step, unsigned seed) {
    const std::vector<double> values = wild(3, seed);
    const double scalars[] = {step, values[0], static_cast<double>(seed % 4)},
                 norms[] = {values[1], values[2]};
    ASSERT_TRUE(writer.append({scalars, norms, {norms, 1}}));
  }
  void expect_like_new(const Session& session) {
    const Session fresh = open(dir());
    const History &a = session.history(), &b = fresh.history();
    ASSERT_EQ(a.steps(), b.steps());
    EXPECT_EQ(a.end_of(a.rows()), b.end_of(b.rows()));
    ASSERT_EQ(a.events().size(), b.events().size());
    for (std::size_t i = 0; i < a.events().size(); ++i) {
      EXPECT_EQ(a.events()[i].row, b.events()[i].row);
      EXPECT_EQ(a.events()[i].gate, b.events()[i].gate);
    }
    for (std::size_t c = 0; c < b.scalars().size(); ++c)
      for (std::size_t r = 0; r < b.rows(); ++r) EXPECT_TRUE(same(a.scalars()[c][r], b.scalars()[c][r])) << r;
    for (const Statistic s : {Statistic::gradient, Statistic::weight}) {
      ASSERT_EQ(a.layers(s), b.layers(s));
      EXPECT_EQ(a.smallest_positive(s), b.smallest_positive(s));
      for (std::size_t c = 0; c < b.layers(s).size(); ++c)
        for (std::size_t r = 0; r < b.rows(); ++r)
          EXPECT_TRUE(same(a.series(s, c)[r], b.series(s, c)[r])) << r;
    }
    EXPECT_EQ(a.first_bad().has_value(), b.first_bad().has_value());
    if (a.first_bad() && b.first_bad()) {
      EXPECT_EQ(a.first_bad()->row, b.first_bad()->row);
    }
    EXPECT_EQ(session.series_words().size(), fresh.series_words().size());
  }
};

TEST_F(Following, RowsThatComeAreWhatReadingAllOfItGives) {
  Result<SeriesWriter> writer = SeriesWriter::create(series(), tables());
  ASSERT_TRUE(writer);
  for (unsigned i = 0; i < 70; ++i) append(*writer, i, i);
  ASSERT_TRUE(writer->flush());
  Session session = open(dir());
  const Session before = session;
  for (unsigned i = 70; i < 90; ++i) {
    append(*writer, i, i);
    if (i % 3 == 0) append(*writer, i + 0.5, i + 1000);
    ASSERT_TRUE(writer->flush());
    ASSERT_TRUE(session.poll());
    expect_like_new(session);
    EXPECT_FALSE(session.poll());
  }
  EXPECT_EQ(before.history().rows(), 70u);
}

TEST_F(Following, AStepThatIsRepeatedStandsWhereItBelongs) {
  Result<SeriesWriter> writer = SeriesWriter::create(series(), tables());
  ASSERT_TRUE(writer);
  for (unsigned i = 0; i < 20; ++i) append(*writer, i, i);
  ASSERT_TRUE(writer->flush());
  Session session = open(dir());
  append(*writer, 12, 500);
  append(*writer, 13, 501);
  ASSERT_TRUE(writer->flush());
  ASSERT_TRUE(session.poll());
  EXPECT_EQ(session.history().rows_at(12).second - session.history().rows_at(12).first, 2u);
  expect_like_new(session);
  append(*writer, 30, 502);
  ASSERT_TRUE(writer->flush());
  ASSERT_TRUE(session.poll());
  expect_like_new(session);
}

TEST_F(Following, AFileThatTakesItsPlaceIsReadWhole) {
  {
    Result<SeriesWriter> writer = SeriesWriter::create(series(), tables());
    ASSERT_TRUE(writer);
    for (unsigned i = 0; i < 20; ++i) append(*writer, i, i);
  }
  Session session = open(dir());
  std::filesystem::rename(series(), series() + ".old");
  Result<SeriesWriter> writer = SeriesWriter::create(series(), tables());
  ASSERT_TRUE(writer);
  for (unsigned i = 0; i < 30; ++i) append(*writer, i, i + 77);
  ASSERT_TRUE(writer->flush());
  std::filesystem::remove(series() + ".old");
  ASSERT_TRUE(session.poll());
  EXPECT_EQ(session.history().rows(), 30u);
  expect_like_new(session);
}

class Filtering : public testing::OpenStory {};

TEST_F(Filtering, FindsWhatEachLineSays) {
  const TraceView& trace = session().incident()->trace;
  for (const char* words : {"", "mm", "MM", "softmax blocks.2", "f16 backward", "culprit", "Backward0", "zzz",
                            "a e i", "on the path", "f32 optimizer", "blocks.3.mlp.up forward mm"}) {
    const Words wanted(words);
    std::vector<OpId> plain;
    for (const OpId op : trace.ops()) {
      const TraceLine l = trace.line(op);
      if (wanted.in(l.name + ' ' + l.module + ' ' + l.node + ' ' + std::string(phase_name(l.phase)) + ' ' +
                    l.read_formats + ' ' + l.write_format + ' ' + mark_words(trace.mark(op))))
        plain.push_back(op);
    }
    EXPECT_EQ(trace.filter(words), plain) << words;
  }
}

}  // namespace
}  // namespace nanquest::viewer
