// viewer/model against values worked out by hand or by brute force.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "viewer/model/history.h"
#include "viewer/model/numbers.h"
#include "viewer/model/pyramid.h"
#include "viewer/model/tensors.h"

namespace nanquest::viewer {
namespace {

const double kNaN = std::nan("");
const double kInf = std::numeric_limits<double>::infinity();

TEST(Numbers, SpellsWhatIsNotFinite) {
  EXPECT_EQ(short_number(kNaN), "NaN");
  EXPECT_EQ(number_beside(5.688581466674805, 5.68858528137207), "5.688581");
  EXPECT_EQ(number_beside(5.68858528137207, 5.688581466674805), "5.688585");
  EXPECT_EQ(number_beside(0.029945737, 0.119782948), "0.02995");
  EXPECT_EQ(number_beside(0.1, std::nextafter(0.1, 1.0)), "0.10000000000000001");
  EXPECT_EQ(number_beside(2.5, kNaN), "2.5");
  EXPECT_EQ(short_number(-kInf), "-Inf");
  EXPECT_EQ(exact_number(kInf), "inf");
  EXPECT_EQ(short_number(65504.0), "6.55e+04");
}

TEST(Numbers, ExactReadsBackToTheSameDouble) {
  for (const double x : {0.1, 1e-310, 65504.0, -5.960464477539063e-08})
    EXPECT_EQ(std::strtod(exact_number(x).c_str(), nullptr), x);
}

TEST(Numbers, GroupsAndCounts) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(1048576), "1,048,576");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(counted(1, "op"), "1 op");
  EXPECT_EQ(counted(2, "op"), "2 ops");
  EXPECT_EQ(bad_text(2, 0, 1), "2 NaN, 1 -Inf");
  EXPECT_EQ(shape_text({8, 128}), "[8, 128]");
  EXPECT_EQ(bytes_text(9300000), "9.3 MB");
}

Extremes brute(const std::vector<double>& v, std::size_t a, std::size_t b) {
  Extremes out;
  for (std::size_t i = a; i < b; ++i) {
    if (std::isnan(v[i]))
      ++out.nan;
    else if (std::isinf(v[i]))
      ++(v[i] > 0 ? out.pos_inf : out.neg_inf);
    else {
      out.min = std::min(out.min, v[i]);
      out.max = std::max(out.max, v[i]);
    }
  }
  return out;
}

TEST(Pyramid, EqualsBruteForceOnRandomStretches) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> v(20011);
  for (double& x : v) {
    x = normal(random);
    const auto roll = random() % 500;
    if (roll == 0) x = kNaN;
    if (roll == 1) x = kInf;
    if (roll == 2) x = -kInf;
  }
  const Pyramid pyramid{v};
  for (int i = 0; i < 2000; ++i) {
    std::size_t a = random() % v.size(), b = random() % (v.size() + 1);
    if (i % 3 == 0) b = std::min(v.size(), a + random() % 200);
    if (a > b) std::swap(a, b);
    const Extremes got = pyramid.query(a, b), want = brute(v, a, b);
    ASSERT_EQ(got.min, want.min) << a << ' ' << b;
    ASSERT_EQ(got.max, want.max);
    ASSERT_EQ(got.nan, want.nan);
    ASSERT_EQ(got.pos_inf, want.pos_inf);
    ASSERT_EQ(got.neg_inf, want.neg_inf);
  }
}

TEST(Pyramid, EmptyAndAllNaN) {
  EXPECT_FALSE(Pyramid().query(0, 10).has_finite());
  const Extremes e = Pyramid(std::vector<double>(1000, kNaN)).query(0, 5000);
  EXPECT_FALSE(e.has_finite());
  EXPECT_EQ(e.nan, 1000u);
}

TEST(History, KeepsNonFiniteValuesInEveryReduction) {
  SeriesTable scalars{"scalars", {"step", "gate"}, {}};
  SeriesTable norms{"grad_norm", {"a", "b"}, {}};
  for (int i = 0; i < 1000; ++i) {
    scalars.values.insert(scalars.values.end(), {100.0 + i, i == 500 ? 2.0 : 0.0});
    norms.values.insert(norms.values.end(), {1.0 + i, i == 500 ? kNaN : i == 7 ? -kInf : 2.0});
  }
  const History history({scalars, norms});
  ASSERT_EQ(history.rows(), 1000u);
  EXPECT_EQ(history.row_of(600), 500u);
  ASSERT_EQ(history.events().size(), 1u);
  EXPECT_EQ(history.events()[0].step, 600);
  EXPECT_TRUE(history.has(Statistic::gradient));
  EXPECT_FALSE(history.has(Statistic::weight));
  for (const std::size_t columns : {1u, 3u, 40u, 5000u}) {
    const HeatMap map = history.heat_map(Statistic::gradient, 0, 1000, columns);
    ASSERT_EQ(map.layers, 2u);
    std::uint64_t nan = 0, neg = 0;
    for (std::size_t c = 0; c < map.columns; ++c) {
      nan += map.at(1, c).extremes.nan;
      neg += map.at(1, c).extremes.neg_inf;
    }
    EXPECT_EQ(nan, 1u);
    EXPECT_EQ(neg, 1u);
  }
  EXPECT_EQ(history.smallest_positive(Statistic::gradient), 1.0);
}

/// Wherever the columns begin and end: each row is in one of them, and a cell summarises its rows.
TEST(History, ACellIsWhatItsRowsAre) {
  SeriesTable norms{"grad_norm", {"a"}, {}};
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i)
    norms.values.push_back(random() % 97 == 0   ? kNaN
                           : random() % 97 == 0 ? -kInf
                                                : static_cast<double>(random() % 1000));
  const History history({norms});
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t first = random() % 4000, last = first + 1 + random() % (5000 - first);
    const std::size_t columns = 1 + random() % 100;
    const HeatMap map = history.heat_map(Statistic::gradient, first, last, columns);
    ASSERT_EQ(map.columns, std::min(columns, last - first));
    ASSERT_EQ(map.edges.size(), map.columns + 1);
    EXPECT_EQ(map.edges.front(), first);
    EXPECT_EQ(map.edges.back(), last);
    for (std::size_t c = 0; c < map.columns; ++c) {
      ASSERT_LT(map.edges[c], map.edges[c + 1]) << "no column is empty";
      Extremes rows;
      for (std::size_t r = map.edges[c]; r < map.edges[c + 1]; ++r) rows.add(norms.values[r]);
      for (const Extremes& shown : {map.at(0, c).extremes, map.all[c]}) {
        EXPECT_EQ(shown.nan, rows.nan);
        EXPECT_EQ(shown.neg_inf, rows.neg_inf);
        EXPECT_EQ(shown.min, rows.min);
        EXPECT_EQ(shown.max, rows.max);
      }
    }
  }
}

TEST(History, TableWithoutStepsAndRaggedTables) {
  const History history({{"weight_norm", {"x"}, {1, 2, 3}}, {"scalars", {"loss"}, {5}}});
  ASSERT_EQ(history.rows(), 3u);
  EXPECT_EQ(history.steps()[2], 2);
  EXPECT_TRUE(std::isnan((*history.scalar("loss"))[1]));
  EXPECT_EQ(history.first_available(), Statistic::weight);
}

TensorData floats(const std::vector<float>& values) {
  TensorData data{
      DType::float32, {static_cast<std::int64_t>(values.size())}, std::vector<std::byte>(values.size() * 4)};
  std::memcpy(data.bytes.data(), values.data(), data.bytes.size());
  return data;
}

/// Every fp16 boundary, against the rounding of probe/numerics (itself checked against PyTorch).
TEST(Fits, CountsEqualARealCast) {
  std::vector<float> values = {65504,
                               65519.996f,
                               65520,
                               65536,
                               6.1035156e-05f,
                               6.0e-05f,
                               5.9604645e-08f,
                               2.9802322e-08f,
                               2.98023259e-08f,
                               1e-30f,
                               464,
                               464.00003f,
                               57344,
                               61440,
                               61439.996f,
                               0,
                               -1};
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    float x;
    std::memcpy(&x, &bits, 4);
    values.push_back(x);
  }
  FitCounts counts;
  for_each_value(floats(values), [&](double x) { counts.add(x); });
  for (const Format format : kFitFormats) {
    Fit cast;
    for (const float x : values) {
      if (!std::isfinite(x) || x == 0) continue;
      const double there = round_to(format, x);
      cast.overflow += !std::isfinite(there);
      cast.flushed += there == 0;
      cast.subnormal += there != 0 && std::abs(there) < info(format).min_normal;
    }
    EXPECT_EQ(counts.in(format), cast) << info(format).name;
  }
}

}  // namespace
}  // namespace nanquest::viewer
