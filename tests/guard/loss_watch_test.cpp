// A spike is a loss far above its usual level, reported once; noise, slow growth and NaN are none.
#include "probe/step/loss_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "probe/snapshot/run_dir.h"
#include "probe/snapshot/series.h"
#include "tests/guard/guarded_training.h"

namespace nanquest::guard::testing {
namespace {

TEST(LossWatch, ordinary_training_has_none) {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(0, 0.15);
  for (const double decay : {0.0, 0.002}) {
    LossWatch watch;
    for (int i = 0; i < 5000; ++i)
      EXPECT_FALSE(watch.spikes(1 + 4 * std::exp(-decay * i) + noise(random))) << i;
  }
}

TEST(LossWatch, a_jump_is_told_once_and_again_after_it_came_down) {
  LossWatch watch;
  for (int i = 0; i < 40; ++i) ASSERT_FALSE(watch.spikes(3 + 0.01 * (i % 5)));
  EXPECT_TRUE(watch.spikes(9));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(watch.spikes(9));
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(watch.spikes(3));
  EXPECT_TRUE(watch.spikes(9));
}

TEST(LossWatch, a_level_that_stays_becomes_the_usual_one) {
  LossWatch watch;
  for (int i = 0; i < 64; ++i) watch.spikes(1 + 0.01 * (i % 5));
  int told = 0;
  for (int i = 0; i < 200; ++i) told += watch.spikes(5 + 0.01 * (i % 5));
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(watch.spikes(20));
}

TEST(LossWatch, says_nothing_before_it_knows_and_of_nothing_non_finite) {
  LossWatch watch;
  for (std::size_t i = 0; i < LossWatch::kLeast - 1; ++i) EXPECT_FALSE(watch.spikes(1));
  EXPECT_FALSE(watch.spikes(1000));
  EXPECT_FALSE(watch.spikes(std::nan("")));
  EXPECT_FALSE(watch.spikes(std::numeric_limits<double>::infinity()));
  LossWatch negative;  // losses below zero: far above is still far above
  for (int i = 0; i < 40; ++i) negative.spikes(-2 - 0.01 * (i % 3));
  EXPECT_FALSE(negative.spikes(-1.5));
  EXPECT_TRUE(negative.spikes(3));
}

TEST(LossWatch, is_a_word_of_the_history_and_the_step_is_applied) {
  const ScratchDirectory scratch;
  const std::string run = scratch.path + "/run";
  GuardedTraining guarded({.run_dir = run});
  const at::Tensor w = guarded.net.parameters[0];
  for (std::int64_t i = 0; i < 40; ++i) {
    const double scale = i == 36 ? 50 : 1;
    const StepReport report = guarded.probe->step({.step = i}, [&] {
      const at::Tensor loss = w.square().mean() * scale + 1;
      loss.backward();
      return loss;
    });
    EXPECT_TRUE(report.ok());
    EXPECT_EQ(report.summary, "");
  }
  ASSERT_TRUE(guarded.probe->finish("done"));
  EXPECT_EQ(guarded.probe->incidents(), 0);
  const Result<std::vector<SeriesTable>> read = read_series(series_path(run, 0));
  ASSERT_TRUE(read) << read.error().text();
  const SeriesTable& scalars = (*read)[0];
  const std::size_t columns = scalars.columns.size();
  for (std::size_t r = 0; r < 40; ++r)
    EXPECT_EQ(scalars.values[r * columns + 4], static_cast<double>(r == 36 ? Gate::spike : Gate::ok)) << r;
}

}  // namespace
}  // namespace nanquest::guard::testing
