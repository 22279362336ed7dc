#include "replay/history/growth.h"
#include "replay/cause/precision.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>

#include "probe/nanquest.h"
#include "probe/snapshot/reader.h"
#include "replay/history/trend.h"
#include "replay/lab/ddmin.h"
#include "tests/replay/diagnose/incident.h"
#include "tests/replay/diagnose/programs.h"

namespace nanquest {
namespace {

using nanquest::testing::kInf;
using nanquest::testing::kNaN;

std::vector<double> doubling_every(double steps, int n) {
  std::vector<double> v;
  for (int i = 0; i < n; ++i) v.push_back(3 * std::exp2(i / steps));
  return v;
}

TEST(Growth, SlopeOfAnExponentialIsExact) {
  const Trend trend = log2_trend(doubling_every(4, 32));
  EXPECT_NEAR(trend.bits_per_step, 0.25, 1e-12);
  EXPECT_EQ(trend.rising, 1.0);
  EXPECT_EQ(trend.points, 32);
}

TEST(Growth, NonFiniteZeroAndOutliersChangeNothing) {
  std::vector<double> v = doubling_every(4, 40);
  v[5] = kNaN, v[9] = kInf, v[12] = 0, v[20] = -1, v[30] = 1e30;
  EXPECT_NEAR(log2_trend(v).bits_per_step, 0.25, 0.01);
  EXPECT_EQ(log2_trend(v).points, 36);
}

SnapshotDoc with_column(const std::string& table, const std::string& column,
                        const std::vector<double>& values) {
  SnapshotDoc doc;
  doc.history = {{table, {column}, values}};
  return doc;
}

TEST(Growth, AnAdapterThatBeginsAtZeroHasNotGrown) {
  std::vector<double> evenly;
  for (int i = 1; i <= 24; ++i) evenly.push_back(1e-3 * i);
  EXPECT_FALSE(find_growth(with_column("weight_amax", "q_proj", evenly)).empty());
  for (const char* layer : {"q_proj.lora_B", "q_proj.lora_B.default"}) {
    EXPECT_TRUE(find_growth(with_column("weight_amax", layer, evenly)).empty()) << layer;
    EXPECT_FALSE(find_growth(with_column("weight_amax", layer, doubling_every(4, 24))).empty()) << layer;
  }
  EXPECT_TRUE(find_growth(with_column("grad_norm", "q_proj.lora_A", evenly)).empty());
}

/// Steps from 7 on with these learning rates.
SnapshotDoc with_rates(const std::vector<double>& rates) {
  SnapshotDoc doc;
  doc.history = {{"scalars", {"step", "lr"}, {}}};
  for (std::size_t i = 0; i < rates.size(); ++i) {
    doc.history[0].values.push_back(static_cast<double>(7 + i));
    doc.history[0].values.push_back(rates[i]);
  }
  return doc;
}

TEST(Growth, ALearningRateThatStandsOutIsFound) {
  for (const std::vector<double>& rates :
       {std::vector<double>{2e-4, 4e-4, 0, 1.5e37}, {2e-4, 4e-4, 1.5e37, 1.5e37}}) {
    const auto jump = find_rate_jump(with_rates(rates));
    ASSERT_TRUE(jump);
    EXPECT_EQ(jump->step, rates[2] > 1 ? 9 : 10);
    EXPECT_EQ(jump->rate, 1.5e37);
    EXPECT_EQ(jump->before, 4e-4);
  }
  EXPECT_FALSE(find_rate_jump(with_rates({})));
  EXPECT_FALSE(find_rate_jump(with_rates({1e-4, 1.0})));                   // too few steps
  EXPECT_FALSE(find_rate_jump(with_rates({0, 0, 0, 1e-3})));               // a warm-up begins
  EXPECT_FALSE(find_rate_jump(with_rates({1e-5, 2e-5, 3e-5, 4e-5})));      // and goes on
  EXPECT_FALSE(find_rate_jump(with_rates({1e-3, 1e-7, 1e-7, 1e-3})));      // a restart
  EXPECT_FALSE(find_rate_jump(with_rates({1e-3, 10, 1e-3, 1e-3, 1e-3})));  // long ago
  EXPECT_FALSE(find_rate_jump(with_rates({kNaN, kNaN, kNaN, kNaN})));
}

TEST(Growth, TooFewPointsSayNothing) {
  EXPECT_TRUE(find_growth(with_column("grad_norm", "fc", {1, 2, 4, 8, 16, 32, 64})).empty());
  EXPECT_FALSE(find_growth(with_column("grad_norm", "fc", {1, 2, 4, 8, 16, 32, 64, 128})).empty());
  EXPECT_EQ(log2_trend({7}).bits_per_step, 0);
}

TEST(Growth, FlatNoisyAndFallingSeriesAreSilent) {
  std::vector<double> noisy, falling;
  unsigned state = 1;
  for (int i = 0; i < 64; ++i) {
    state = state * 1664525u + 1013904223u;
    noisy.push_back(1 + (state >> 16) / 65536.0);
    falling.push_back(std::exp2(-i * 0.1));
  }
  EXPECT_TRUE(find_growth(with_column("grad_norm", "fc", noisy)).empty());
  EXPECT_TRUE(find_growth(with_column("scalars", "loss", falling)).empty());
  EXPECT_TRUE(find_growth(with_column("scalars", "loss", std::vector<double>(64, 2.5))).empty());
}

TEST(Growth, LearningRateAndStepMayGrow) {
  EXPECT_TRUE(find_growth(with_column("scalars", "lr", doubling_every(4, 32))).empty());
  EXPECT_TRUE(find_growth(with_column("scalars", "step", doubling_every(4, 32))).empty());
}

TEST(Growth, ALateSurgeIsSeenInTheShortWindow) {
  std::vector<double> v(200, 1.0);
  for (int i = 0; i < 16; ++i) v.push_back(std::exp2(i * 0.5));
  v.push_back(kNaN);  // the incident itself
  const auto found = find_growth(with_column("grad_amax", "blocks.1.mlp", v));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "grad_amax of blocks.1.mlp");
  EXPECT_NEAR(found[0].bits_per_step, 0.5, 0.01);
  EXPECT_TRUE(std::isnan(found[0].series.back()));
}

TEST(Growth, TheChanceOfARiseIsThatOfAllOrders) {
  // Every order of seven numbers: the share of those with at least as many rising pairs, counted by hand.
  std::vector<double> order = {1, 2, 4, 8, 16, 32, 64};
  std::map<int, std::pair<double, int>> seen;  // rising pairs: the stated chance, orders
  int all = 0;
  do {
    const Trend trend = log2_trend(order);
    auto& [chance, count] = seen[static_cast<int>(std::lround(trend.rising * 21))];
    chance = trend.chance;
    ++count, ++all;
  } while (std::next_permutation(order.begin(), order.end()));
  ASSERT_EQ(seen.size(), 22u);
  int at_least = 0;
  for (auto it = seen.rbegin(); it != seen.rend(); ++it) {
    at_least += it->second.second;
    EXPECT_NEAR(it->second.first, static_cast<double>(at_least) / all, 1e-12) << it->first << " pairs";
  }
}

TEST(Growth, OfManyNoisySeriesNoneIsSaidAndOneThatGrowsIs) {
  SnapshotDoc doc;
  doc.history = {{"grad_norm", {}, {}}};
  for (int layer = 0; layer < 200; ++layer) doc.history[0].columns.push_back("layer" + std::to_string(layer));
  std::mt19937 random(7);
  std::normal_distribution<double> bits(0, 2);
  for (int row = 0; row < 9; ++row)
    for (int layer = 0; layer < 200; ++layer)
      doc.history[0].values.push_back(std::exp2(layer == 77 ? row : bits(random)));
  // Some of the others seem to grow by themselves: that is the effect of looking at many.
  int alone = 0;
  for (int layer = 0; layer < 200; ++layer) {
    const auto only = [&](const std::string& name) { return name == "layer" + std::to_string(layer); };
    if (layer != 77) alone += static_cast<int>(find_growth(doc, only).size());
  }
  EXPECT_GT(alone, 0);
  const auto found = find_growth(doc);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "grad_norm of layer77");
}

TEST(Growth, IsAskedOfLayersThatTheCulpritWasComputedFrom) {
  const at::Tensor a = testing::leaf(at::ones({3})), b = testing::leaf(at::ones({3})),
                   aside = testing::leaf(at::ones({3}));
  StepState state;
  state.parameters = {{"net.a.weight", a}, {"net.b.weight", b}, {"aside.weight", aside}};
  const testing::Incident incident(state, [&] {
    const at::Tensor loss = ((a * 2) * b * 0).log().sum() + aside.sum();
    loss.backward();
    return loss;
  });
  const Case c = incident.make();
  ASSERT_NE(c.op(), nullptr);
  EXPECT_EQ(c.op()->name, "aten::log");
  EXPECT_EQ(layers_aside(c.graph(), OpId{c.op_index()}), std::set<std::string>{"aside"});
}

TEST(Growth, StrongestFirst) {
  SnapshotDoc doc;
  doc.history = {{"grad_norm", {"slow", "fast"}, {}}};
  for (int i = 0; i < 32; ++i) {
    doc.history[0].values.push_back(std::exp2(i * 0.1));
    doc.history[0].values.push_back(std::exp2(i * 0.4));
  }
  const auto found = find_growth(doc);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].what, "grad_norm of fast");
}

/// The history that the probe puts into the incident that ends a run of `steps` steps. Layer "fc" has
/// `elements` weights of 1; before each step `change(step, weights)` changes them. Their gradient are the
/// weights.
SnapshotDoc history_of_a_run(std::int64_t elements, std::int64_t steps,
                             const std::function<void(std::int64_t, at::Tensor&)>& change) {
  const testing::Scratch scratch("growth");
  auto probe = Probe::create({.run_dir = scratch / "run"}).value();
  at::Tensor w = at::ones({elements}).set_requires_grad(true);
  probe->watch_parameter("fc.weight", w);
  for (std::int64_t step = 0; step <= steps; ++step) {
    at::Tensor weights = w.detach();
    change(step, weights);
    const StepReport report = probe->step({.step = step}, [&] {
      const at::Tensor loss = (w * weights).sum() * (step == steps ? std::nan("") : 1);
      loss.backward();
      return loss;
    });
    if (report.ok()) {
      probe->after_update(step);
      continue;
    }
    EXPECT_EQ(step, steps) << report.summary;
    const auto file = SnapshotReader::open(report.incident);
    EXPECT_TRUE(file.ok()) << report.summary;
    return file ? file->doc() : SnapshotDoc{};
  }
  ADD_FAILURE() << "the last step should be an incident";
  return {};
}

std::vector<std::string> names(const std::vector<Growth>& grown) {
  std::vector<std::string> all;
  for (const Growth& g : grown) all.push_back(g.what);
  return all;
}

TEST(Growth, OfTheLargestValuesIsSeenInAHistoryThatTheProbeWrote) {
  // One weight in 4096 doubles every eight steps: the norms hardly move, the largest values do.
  const SnapshotDoc doc = history_of_a_run(
      4096, 40, [](std::int64_t step, at::Tensor& w) { w[7] = std::exp2(static_cast<double>(step) / 8); });
  const auto grown = names(find_growth(doc));
  for (const char* what : {"grad_amax of fc", "weight_amax of fc"})
    EXPECT_EQ(std::count(grown.begin(), grown.end(), what), 1) << what;
  for (const char* what : {"grad_norm of fc", "weight_norm of fc"})
    EXPECT_EQ(std::count(grown.begin(), grown.end(), what), 0) << what;
}

constexpr std::int64_t kLarge = (1 << 20) + 1;  // weights of such a layer are measured every 50 steps

TEST(Growth, OfALargeModelsWeightsIsReadWhereTheyWereMeasured) {
  const SnapshotDoc doc =
      history_of_a_run(kLarge, 260, [](std::int64_t, at::Tensor& w) { w.mul_(std::exp2(0.01)); });
  const Growth* norm = nullptr;
  const auto grown = find_growth(doc);
  for (const Growth& g : grown)
    if (g.what == "weight_norm of fc") norm = &g;
  ASSERT_NE(norm, nullptr) << "the norm grew by 2.5 bits";
  EXPECT_NEAR(norm->bits_per_step, 0.01, 1e-3);
  EXPECT_NEAR(norm->last / norm->first, std::exp2(2.0), 0.1);  // between the first and the last measurement
  EXPECT_EQ(log2_trend(norm->series).points, 5) << "what the history repeats is no measurement";
}

TEST(Growth, OfALargeModelsWeightsNeedsEveryMeasurementToRise) {
  const SnapshotDoc doc = history_of_a_run(kLarge, 260, [](std::int64_t step, at::Tensor& w) {
    w.mul_(std::exp2(step > 100 && step <= 150 ? -0.01 : 0.02));
  });
  const auto grown = names(find_growth(doc));
  EXPECT_EQ(std::count(grown.begin(), grown.end(), "weight_norm of fc"), 0);
}

/// A product of 90 000 in fp16 after `bits` of growth of the loss over the last steps.
Origin origin_after_growth_of(double bits) {
  const at::Tensor w = testing::leaf(at::full({4}, 300.f));
  StepState state;
  state.parameters = {{"w", w}};
  const testing::Incident incident(state, [&] {
    const at::Tensor half = w.to(at::kHalf);
    const at::Tensor loss = (half * half).to(at::kFloat).sum();
    loss.backward();
    return loss;
  });
  const Case made = incident.make();
  SnapshotDoc doc = made.doc();
  doc.history = with_column("scalars", "loss", doubling_every(16 / bits, 17)).history;
  const Verdict v = diagnose(made.with(doc), reproduction_of(verify(incident.replayer())), "memory");
  EXPECT_EQ(v.cause, Label::fp16_overflow) << v.explanation;
  return v.origin;
}

TEST(Growth, AnOverflowThatItExplainsCameFromManySteps) {
  // log2(90 000 / 65 504) is 0.46.
  EXPECT_EQ(origin_after_growth_of(4), Origin::multi_step);
  EXPECT_EQ(origin_after_growth_of(1), Origin::multi_step);
  EXPECT_EQ(origin_after_growth_of(0.01), Origin::op);
}

/// What an overflow of fp32 is called after the loss has doubled so often in so many steps.
Label cause_after_doubling(double times, std::size_t steps) {
  const at::Tensor w = testing::leaf(at::full({4}, 2e19f));
  StepState state;
  state.parameters = {{"w", w}};
  const testing::Incident incident(state, [&] {
    const at::Tensor loss = (w * w).sum();
    loss.backward();
    return loss;
  });
  const Case made = incident.make();
  SnapshotDoc doc = made.doc();
  doc.history =
      with_column("scalars", "loss", doubling_every(static_cast<double>(steps - 1) / times, steps)).history;
  const Verdict v = diagnose(made.with(doc), reproduction_of(verify(incident.replayer())), "memory");
  EXPECT_EQ(v.origin, Origin::multi_step);
  return v.cause;
}

TEST(Growth, ALossThatRanAwayBeyondFp32IsDivergence) {
  EXPECT_EQ(cause_after_doubling(60, 33), Label::divergence);
  EXPECT_EQ(cause_after_doubling(10, 33), Label::fp16_overflow);
}

TEST(Ddmin, FindsEverySubsetOfEightExactly) {
  for (unsigned wanted = 1; wanted < 256; ++wanted) {
    const auto holds = [&](const std::vector<int>& s) {
      unsigned have = 0;
      for (int i : s) have |= 1u << i;
      return (have & wanted) == wanted;
    };
    unsigned found = 0;
    for (int i : ddmin<int>({0, 1, 2, 3, 4, 5, 6, 7}, holds, 1000)) found |= 1u << i;
    EXPECT_EQ(found, wanted);
  }
}

TEST(Ddmin, StopsAtItsBudgetWithASetThatStillPasses) {
  std::vector<int> all(64);
  for (int i = 0; i < 64; ++i) all[static_cast<std::size_t>(i)] = i;
  int calls = 0;
  const auto test = [](const std::vector<int>& s) {
    return std::count(s.begin(), s.end(), 3) + std::count(s.begin(), s.end(), 60) == 2;
  };
  const auto left = ddmin<int>(all, test, 7, &calls);
  EXPECT_LE(calls, 7);
  EXPECT_TRUE(test(left));
}

TEST(Growth, AFewStepsThatRunAwayAreEnough) {
  const auto of = [](std::vector<double> loss) {
    SnapshotDoc doc;
    doc.history = {SeriesTable{"scalars", {"loss"}, std::move(loss)}};
    return find_growth(doc);
  };
  const std::vector<Growth> found = of({2.3, 2.2, 85, 4e9, 1e36, std::numeric_limits<double>::infinity()});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "loss");
  EXPECT_DOUBLE_EQ(found[0].first, 2.2);
  EXPECT_DOUBLE_EQ(found[0].last, 1e36);
  EXPECT_TRUE(of({2.3, 2.2, 2.1, 80, 1e30}).size() == 1);
  // One jump is a batch, not growth; and what came down again does not run away.
  EXPECT_TRUE(of({2.3, 2.2, 2.1, 1e30}).empty());
  EXPECT_TRUE(of({2.3, 85, 4e9, 2.1}).empty());
}

TEST(Growth, TheFirstUpdateIsKnownByItsRatio) {
  // cleanrl's ppo.py with a rate of 1e18, as its file has it: one row, of after the first update.
  const auto of = [](double norm, double ratio, double largest) {
    SnapshotDoc doc;
    for (const auto& [name, value] :
         {std::pair{"weight_norm", norm}, {"update_ratio", ratio}, {"weight_amax", largest}})
      doc.history.push_back({name, {"critic.0"}, {value}});
    return find_growth(doc);
  };
  const std::vector<Growth> found = of(6e18, 2e18, 1e18);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(words(found[0]), "weight_norm of critic.0 grew from 3 to 6.0000e+18 over the last 2 steps");
  EXPECT_TRUE(of(6e18, 0, 1e18).empty()) << "all zero before";
  EXPECT_TRUE(of(600, 300, 100).empty()) << "an update of a layer that began near zero";
  EXPECT_TRUE(of(6e18, 1.5, 1e18).empty()) << "as large before";
}

TEST(Growth, OneUpdateThatMakesWeightsEnormousIsEnough) {
  const auto of = [](const char* table, const std::vector<double>& values) {
    return find_growth(with_column(table, "conv2", values));
  };
  const std::vector<Growth> found = of("weight_amax", {0.06, 3e35});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "weight_amax of conv2");
  EXPECT_DOUBLE_EQ(found[0].first, 0.06);
  EXPECT_DOUBLE_EQ(found[0].last, 3e35);
  // AdamW with a rate of 1000 moves each weight by that. No weight that an update made ten times larger is
  // meant.
  EXPECT_EQ(of("weight_amax", {0.19, 1000.5}).size(), 1u);
  EXPECT_TRUE(of("weight_amax", {5, 1100}).empty());
  EXPECT_TRUE(of("weight_amax", {0.19, 900}).empty());
  // A batch makes such a gradient; a weight that began near zero has not gone far; and nothing is known
  // before the first update.
  EXPECT_TRUE(of("grad_amax", {0.06, 3e35}).empty());
  EXPECT_TRUE(of("weight_amax", {1e-12, 0.5}).empty());
  EXPECT_TRUE(of("weight_amax", {0, 3e35}).empty());
  EXPECT_TRUE(of("weight_amax", {3e35}).empty());
}

}  // namespace
}  // namespace nanquest
