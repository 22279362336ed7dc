// Spikes and divergence are found in made runs; healthy runs have next to none, whatever their shape.
#include "probe/step/run_band.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/step/unseen_series.h"

namespace nanquest::testing {
namespace {

constexpr std::int64_t kSteps = 10000;

struct Counts {
  int spikes = 0, diverged = 0;
};

Counts count(const std::vector<MadeRun>& runs, std::size_t which, unsigned seed) {
  MadeRun run = runs[which];
  Draw draw(seed);
  RunBand band;
  Counts counts;
  for (std::int64_t i = 0; i < kSteps; ++i) {
    const BandNews news = band.judge(run.step(i, draw));
    counts.spikes += news.kind == BandNews::spike;
    counts.diverged += news.kind == BandNews::diverged;
  }
  return counts;
}

/// Episodes of healthy runs: at most one in 5,000 steps over all shapes, `most` in one shape, none that
/// diverges but `diverging`.
void expect_healthy(const std::vector<MadeRun>& runs, int most, int diverging = 0) {
  constexpr int kSeeds = 5;
  int all = 0, diverged = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    Counts of_shape;
    for (unsigned seed = 0; seed < kSeeds; ++seed) {
      const Counts counts = count(runs, r, 7 * seed + 1);
      of_shape.spikes += counts.spikes;
      of_shape.diverged += counts.diverged;
    }
    ::testing::Test::RecordProperty(runs[r].name, of_shape.spikes);
    EXPECT_LE(of_shape.spikes, most) << runs[r].name;
    if (of_shape.diverged > 0)
      ::testing::Test::RecordProperty(runs[r].name + ", diverged", of_shape.diverged);
    all += of_shape.spikes;
    diverged += of_shape.diverged;
  }
  EXPECT_LE(all, static_cast<int>(runs.size()) * kSeeds * kSteps / 5000);
  EXPECT_LE(diverged, diverging);
}

TEST(RunBand, healthy_runs_have_at_most_one_episode_in_5000_steps) {
  expect_healthy(calibrated_runs(), 10);
}

TEST(RunBand, runs_of_other_shapes_have_no_more) {
  expect_healthy(other_runs(), 20);
}

// One run of "a curriculum of ten lengths" is said to diverge: its loss becomes 2.5 times as large and stays
// so.
TEST(RunBand, runs_that_were_never_looked_at_have_no_more) {
  expect_healthy(unseen_runs(), 10, 1);
}

/// A steady run of `steps` with noise of 3 %.
class Steady {
 public:
  explicit Steady(int steps, double level = 2) : level_(level) {
    for (int i = 0; i < steps; ++i) EXPECT_FALSE(next().outside()) << i;
  }
  BandNews next(double times = 1, double weights = 10) {
    const double loss = times * level_ * std::exp(draw_.normal(0.03)),
                 norm = times * std::exp(draw_.normal(0.1));
    return band_.judge(
        {.step = step_++, .loss = loss, .norm = norm, .rate = 1e-3, .weights = weights, .moved = 1e-3});
  }
  std::int64_t step() const { return step_; }

 private:
  Draw draw_{5};
  RunBand band_;
  double level_;
  std::int64_t step_ = 0;
};

TEST(RunBand, a_spike_is_told_once_and_its_later_steps_go_on) {
  Steady run(200);
  EXPECT_EQ(run.next(5).kind, BandNews::spike);
  for (int i = 0; i < 4; ++i) {
    const BandNews news = run.next(5);
    EXPECT_EQ(news.kind, BandNews::goes_on);
    EXPECT_EQ(news.since, 200);
    EXPECT_TRUE(news.loss);
    EXPECT_NEAR(news.usual_loss.middle, 2, 0.1);
  }
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(run.next().outside()) << i;
  EXPECT_EQ(run.next(5).kind, BandNews::inside) << "as large as the last one, and soon after it";
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(run.next().outside()) << i;
  EXPECT_EQ(run.next(40).kind, BandNews::spike);
}

TEST(RunBand, says_nothing_before_it_knows_nor_of_what_is_not_finite) {
  Steady run(static_cast<int>(Band::kLeast) - 1);
  EXPECT_FALSE(run.next(1000).outside());
  Steady known(100);
  EXPECT_FALSE(known.next(std::nan("")).outside());
  EXPECT_FALSE(known.next(std::numeric_limits<double>::infinity()).outside());
  EXPECT_TRUE(known.next(10).outside());
}

// A regression whose first losses are ten times those of step 60, with one of 20 times among them.
TEST(RunBand, the_first_steps_of_a_run_do_not_hide_a_spike_a_hundred_steps_later) {
  Draw draw(5);
  RunBand band;
  for (int i = 0; i < 115; ++i) {
    const double level = 0.3 + 2.7 * std::exp(-i / 6.0) + (i == 3 ? 3 : 0);
    const double loss = level * std::exp(draw.normal(0.2));
    EXPECT_FALSE(band.judge({.step = i, .loss = loss, .rate = 1e-3}).outside()) << i;
  }
  EXPECT_EQ(band.judge({.step = 115, .loss = 30, .rate = 1e-3}).kind, BandNews::spike);
}

TEST(RunBand, a_loss_that_stays_outside_has_diverged_since_its_first_step_there) {
  Steady run(300);
  int told = 0;
  for (int i = 0; i < 400; ++i) {
    const BandNews news = run.next(std::min(50.0, 1 + 0.5 * i));
    if (news.kind != BandNews::diverged) continue;
    ++told;
    EXPECT_GE(news.since, 300);
    EXPECT_LE(news.since, 302);
  }
  EXPECT_EQ(told, 1);
}

TEST(RunBand, a_loss_that_climbs_from_the_start_has_diverged_where_the_weights_grow) {
  for (const bool grow : {true, false}) {
    RunBand band;
    int told = 0;
    for (int i = 0; i < 60; ++i) {
      const double loss = 4 * std::exp(0.12 * i);
      const BandNews news =
          band.judge({.step = i, .loss = loss, .norm = loss, .rate = 1, .weights = grow ? 10.0 + i : 10.0});
      told += news.kind == BandNews::diverged;
      if (news.kind == BandNews::diverged) {
        EXPECT_LE(news.since, 16);
      }
    }
    EXPECT_EQ(told, grow ? 1 : 0);
  }
}

// Twice as many classes from step 375 on: cross-entropy of a network with a rate of 0.05.
TEST(RunBand, a_loss_that_jumps_and_is_learned_down_again_does_not_climb) {
  RunBand band;
  Draw draw(5);
  int diverged = 0;
  for (int i = 0; i < 700; ++i) {
    const double usual = 0.2 + 1.2 * std::exp(-i / 60.0), since = i - 375;
    const double loss = (since < 0 ? usual : 0.4 + 9 * std::exp(-since / 10)) * std::exp(draw.normal(0.25));
    const double moved = since < 0 ? 0.008 : 0.02 + 0.04 * std::exp(-std::abs(since - 8) / 8);
    const auto news = band.judge({.step = i, .loss = loss, .rate = 0.05, .weights = 12, .moved = moved});
    diverged += news.kind == BandNews::diverged;
  }
  EXPECT_EQ(diverged, 0);
}

TEST(RunBand, a_loss_that_was_negative_has_no_size_that_could_climb) {
  RunBand band;
  for (int i = 0; i < 60; ++i) {  // returns of longer episodes: an actor and its critic
    const double loss = i == 3 ? -0.3 : 4 * std::exp(0.12 * i);
    const BandNews news = band.judge({.step = i, .loss = loss, .norm = loss, .rate = 1, .weights = 10.0 + i});
    EXPECT_NE(news.kind, BandNews::diverged) << i;
  }
}

TEST(RunBand, a_higher_rate_may_bring_a_run_back_towards_its_start_but_not_beyond_it) {
  for (const double to : {2.0, 20.0}) {
    RunBand band;
    Draw draw(3);
    int told = 0;
    for (int i = 0; i < 600; ++i) {
      const bool raised = i >= 500;
      const double level = raised ? to : 0.2 + 3 * std::exp(-i / 50.0);
      told +=
          band.judge({.step = i, .loss = level * std::exp(draw.normal(0.02)), .rate = raised ? 0.1 : 0.001})
              .kind == BandNews::spike;
    }
    EXPECT_EQ(told, to > 3 ? 1 : 0) << to;
  }
}

/// A loss that jumps to `jump` times its level in every 200th step, where a target network is renewed, and
/// falls back within 20 steps. `told`: the run tells its copies.
class Renewed {
 public:
  /// `start`: how many times its level the loss is at first.
  explicit Renewed(bool told, int every = 200, double start = 1) : told_(told), every_(every), start_(start) {}
  BandNews next(double jump) {
    if (step_ > 0 && step_ % every_ == 0) ++copies_;
    const double since = static_cast<double>(step_ % 200);
    const double times = 1 + ((step_ < 200 ? start_ : jump) - 1) * std::exp(-since / 5);
    const double noise = std::exp(draw_.normal(0.1));
    return band_.judge({.step = step_++,
                        .loss = 0.05 * times * noise,
                        .norm = 0.2 * std::sqrt(times) * noise,
                        .rate = 1e-3,
                        .copies = told_ ? copies_ : 0});
  }
  /// Spikes of so many steps.
  int spikes(int steps, double jump) {
    int count = 0;
    for (int i = 0; i < steps; ++i) count += next(jump).kind == BandNews::spike;
    return count;
  }

 private:
  Draw draw_{5};
  RunBand band_;
  bool told_;
  int every_;
  double start_;
  std::int64_t step_ = 0, copies_ = 0;
};

TEST(RunBand, a_jump_after_a_copy_into_a_target_is_the_runs_own) {
  EXPECT_EQ(Renewed(true).spikes(4000, 8), 0);
  EXPECT_GE(Renewed(false).spikes(4000, 8), 1);
}

TEST(RunBand, after_a_copy_a_larger_jump_than_earlier_ones_is_a_spike) {
  Renewed run(true);
  EXPECT_EQ(run.spikes(1000, 8), 0);
  EXPECT_EQ(run.next(1000).kind, BandNews::spike);
  EXPECT_EQ(Renewed(true).spikes(1000, 1000), 1) << "however few copies are known, if it is far enough out";
}

TEST(RunBand, the_first_copies_may_bring_a_run_back_towards_its_start_but_not_beyond_it) {
  EXPECT_EQ(Renewed(true, 200, 400).spikes(4000, 400), 0);
  EXPECT_EQ(Renewed(true, 200, 400).spikes(201, 4000), 1);
  EXPECT_GE(Renewed(true).spikes(201, 400), 1) << "it began at its level";
}

TEST(RunBand, copies_in_every_step_explain_no_jump) {
  EXPECT_GE(Renewed(true, 1).spikes(1000, 8), 1);
}

TEST(RunBand, a_jump_long_after_a_copy_is_a_spike_although_copies_made_such) {
  Renewed run(true);
  EXPECT_EQ(run.spikes(900, 8), 0);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(run.next(8).outside());
  EXPECT_EQ(run.next(8 * std::exp(150 / 5.0)).kind, BandNews::spike) << "eight times the level, in step 950";
}

}  // namespace
}  // namespace nanquest::testing
