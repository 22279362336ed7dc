// ProbeOptions::least: what processes that make a step together decide alike. The others are played by a
// function.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/guard/guarded_training.h"

namespace nanquest::guard::testing {
namespace {

namespace fs = std::filesystem;

/// What the other of two processes gives, call by call; what this one gave.
struct Other {
  std::vector<std::int64_t> gives, heard;
  std::int64_t operator()(std::int64_t own) {
    heard.push_back(own);
    return heard.size() <= gives.size() ? std::min(own, gives[heard.size() - 1]) : own;
  }
};

ProbeOptions first_of_two(const ScratchDirectory& scratch, Other& other) {
  return {.run_dir = scratch.path + "/run", .world_size = 2, .least = [&other](std::int64_t v) {
            return other(v);
          }};
}

Batch with_nan(const Batch& batch) {
  Batch bad{batch.x.clone(), batch.y, batch.ids};
  bad.x[2][1] = std::numeric_limits<double>::quiet_NaN();
  return bad;
}

bool any_file(const ScratchDirectory& scratch) {
  return fs::directory_iterator(scratch.path + "/run/incidents") != fs::directory_iterator();
}

constexpr std::int64_t kBadOnOther = 0 * 2 + 1, kOverflowOnOther = 1 * 2 + 1, kWellOnOther = 2 * 2 + 1;

TEST(Together, a_step_that_is_bad_elsewhere_never_happened_here) {
  const std::vector<Batch> all = batches(2);
  for (const std::int64_t gate : {kBadOnOther, kOverflowOnOther}) {
    Other other{{gate}, {}};
    const ScratchDirectory scratch;
    GuardedTraining guarded(first_of_two(scratch, other));
    const at::Tensor mean = guarded.net.running_mean.clone();
    const StepReport report = guarded.step(0, all[0]);
    EXPECT_EQ(report.gate, gate == kBadOnOther ? Gate::non_finite : Gate::scale_overflow);
    EXPECT_NE(report.summary.find("rank 1"), std::string::npos) << report.summary;
    EXPECT_TRUE(at::equal(guarded.net.running_mean, mean));
    EXPECT_FALSE(guarded.net.parameters[0].grad().defined());
    EXPECT_EQ(other.heard.front(), 4) << "this one's own gate is ok, by rank 0";
    EXPECT_EQ(any_file(scratch), gate == kBadOnOther);
    // The next step is asked about anew.
    EXPECT_TRUE(guarded.step(0, all[1]).ok());
  }
}

TEST(Together, a_bad_step_runs_again_on_all_or_on_none) {
  const std::vector<Batch> all = batches(1);
  for (const std::int64_t again : {0, 1}) {
    Other other{{kWellOnOther, again}, {}};
    const ScratchDirectory scratch;
    GuardedTraining guarded(first_of_two(scratch, other));
    const std::int64_t before = guarded.net.position;
    int runs = 0;
    const Batch bad = with_nan(all[0]);
    const StepReport report = guarded.probe->step({.step = 0}, [&] {
      ++runs;
      return guarded.net.compute(bad);
    });
    EXPECT_EQ(report.gate, Gate::non_finite);
    EXPECT_EQ(runs, again == 1 ? 2 : 1);
    EXPECT_EQ(any_file(scratch), again == 1) << report.summary;
    EXPECT_EQ(report.incident.empty(), again == 0);
    EXPECT_EQ(other.heard, (std::vector<std::int64_t>{0, 1}));
    EXPECT_EQ(guarded.net.position, before);
    if (again == 0) {
      EXPECT_NE(report.summary.find("another process"), std::string::npos) << report.summary;
    }
  }
}

// However a rank's own probe is, it must answer as often as the others ask.
TEST(Together, every_level_asks_as_often) {
  const std::vector<Batch> all = batches(1);
  for (const Level level : {Level::off, Level::guard, Level::trace, Level::watch}) {
    Other other;
    const ScratchDirectory scratch;
    ProbeOptions options = first_of_two(scratch, other);
    options.level = level;
    GuardedTraining guarded(std::move(options));
    EXPECT_EQ(guarded.step(0, with_nan(all[0])).gate, Gate::non_finite);
    EXPECT_EQ(other.heard.size(), 2u) << static_cast<int>(level);
    EXPECT_TRUE(guarded.step(0, all[0]).ok());
    EXPECT_EQ(other.heard.size(), 3u) << static_cast<int>(level);
    EXPECT_TRUE(guarded.probe->update(1, [] {}).ok());
    EXPECT_EQ(other.heard.size(), 4u) << static_cast<int>(level);
  }
}

TEST(Together, an_update_that_went_wrong_elsewhere_leaves_no_state_to_go_on_with) {
  const std::vector<Batch> all = batches(1);
  // gate, update, then the best of them.
  for (const std::int64_t update : {0, 1}) {
    Other other{{kWellOnOther, update, -2}, {}};
    const ScratchDirectory scratch;
    GuardedTraining guarded(first_of_two(scratch, other));
    ASSERT_EQ(guarded.probe->step({.step = 0}, [&] { return guarded.net.compute(all[0]); }).gate, Gate::ok);
    const StepReport report = guarded.probe->update(0, [&] { guarded.net.update(); });
    EXPECT_EQ(report.gate, Gate::non_finite);
    EXPECT_TRUE(report.state_corrupt);
  }
}

}  // namespace
}  // namespace nanquest::guard::testing
