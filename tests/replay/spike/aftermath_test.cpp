#include "replay/history/aftermath.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace nanquest {
namespace {

constexpr std::int64_t kSpike = 100;

/// A run whose usual loss lies between `offset` + 1 and + 2, and what it is `after` so many steps.
std::vector<SeriesTable> run(const std::function<double(int)>& after, int steps = 64, double offset = 0) {
  SeriesTable table{.name = "scalars", .columns = {"step", "lr", "loss"}, .values = {}};
  const auto add = [&](std::int64_t step, double loss) {
    table.values.insert(table.values.end(), {static_cast<double>(step), 0.1, loss});
  };
  for (std::int64_t step = 0; step < kSpike; ++step)
    add(step, offset + 1.5 + 0.5 * std::sin(static_cast<double>(7 * step)));
  add(kSpike, offset + 50);
  for (int n = 1; n <= steps; ++n) add(kSpike + n, offset + after(n));
  return {{.name = "grad_norm", .columns = {"fc"}, .values = std::vector<double>(table.rows(), 1)}, table};
}

TEST(Aftermath, ALossThatDecaysCameBack) {
  EXPECT_EQ(aftermath_of(run([](int n) { return 1.5 + 40 * std::exp(-0.2 * n); }), kSpike),
            Aftermath::came_back);
  EXPECT_EQ(aftermath_of(run([](int n) { return 1.5 + 40 * std::exp(-0.2 * n); }, 64, -7), kSpike),
            Aftermath::came_back);
}

TEST(Aftermath, ALossThatStaysFarAboveHasLeft) {
  EXPECT_EQ(aftermath_of(run([](int n) { return 30.0 + n % 3; }), kSpike), Aftermath::left);
  EXPECT_EQ(aftermath_of(run([](int n) { return 30.0 + n % 3; }, 64, -7), kSpike), Aftermath::left);
  EXPECT_EQ(aftermath_of(run([](int n) { return n < 20 ? 30.0 : std::nan(""); }), kSpike), Aftermath::left);
}

TEST(Aftermath, WhatLiesBetweenIsOpen) {
  EXPECT_EQ(aftermath_of(run([](int) { return 2.5; }), kSpike), Aftermath::open) << "above all, and not far";
  EXPECT_EQ(aftermath_of(run([](int n) { return n < 50 ? 30 : 1.5; }), kSpike), Aftermath::open)
      << "it came back, after most of the time";
  EXPECT_EQ(aftermath_of(run([](int n) { return n < 60 ? 30 : 1.5; }), kSpike), Aftermath::open)
      << "its end is usual again";
}

TEST(Aftermath, WithoutEnoughStepsNothingIsKnown) {
  EXPECT_EQ(aftermath_of(run([](int) { return 1.5; }, 63), kSpike), Aftermath::open);
  EXPECT_EQ(aftermath_of(run([](int) { return 1.5; }), 10), Aftermath::open);
  EXPECT_EQ(aftermath_of({}, kSpike), Aftermath::open);
  auto unknown = run([](int) { return 30; });
  for (std::size_t i = 2; i < unknown[1].values.size(); i += 3) unknown[1].values[i] = std::nan("");
  EXPECT_EQ(aftermath_of(unknown, kSpike), Aftermath::open) << "the loss is not known";
}

}  // namespace
}  // namespace nanquest
