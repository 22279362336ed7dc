// The probe changes nothing: training with and without it, and a skipped step against one that never was.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "probe/snapshot/reader.h"
#include "tests/guard/guarded_training.h"

namespace nanquest::guard::testing {
namespace {

TEST(Innocence, training_with_the_probe_is_bit_identical) {
  const std::vector<Batch> all = batches(20);
  TinyTraining bare;
  train_without_probe(bare, all);
  const auto expected = bare.state();

  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  for (std::size_t i = 0; i < all.size(); ++i)
    ASSERT_TRUE(guarded.step(static_cast<std::int64_t>(i), all[i]).ok());
  EXPECT_EQ(first_difference(guarded.net.state(), expected), "");
  EXPECT_TRUE(guarded.probe->finish("done"));
}

TEST(Innocence, a_skipped_step_never_happened) {
  const std::vector<Batch> all = batches(20);
  TinyTraining never;
  train_without_probe(never, all);
  const auto expected = never.state();

  for (const double poison : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    Batch bad{all[3].x.clone(), all[3].y, {"poisoned"}};
    bad.x[2][1] = poison;
    const ScratchDirectory scratch;
    GuardedTraining guarded({.run_dir = scratch.path + "/run"});
    std::int64_t step = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 10) {
        const auto before = guarded.net.state();
        std::vector<std::pair<std::string, at::Tensor>> kept;
        for (const auto& [name, value] : before) kept.emplace_back(name, value.clone());
        const StepReport report = guarded.step(step++, bad);
        EXPECT_EQ(report.gate, Gate::non_finite);
        EXPECT_FALSE(std::isfinite(report.loss));
        EXPECT_GT(report.bad_gradients, 0u);
        EXPECT_FALSE(report.state_corrupt) << report.summary;
        EXPECT_EQ(first_difference(guarded.net.state(), kept), "");
        for (const at::Tensor& p : guarded.net.parameters) EXPECT_FALSE(p.grad().defined());
        ASSERT_TRUE(std::filesystem::exists(report.incident)) << report.summary;
      }
      ASSERT_TRUE(guarded.step(step++, all[i]).ok());
    }
    EXPECT_EQ(guarded.probe->incidents(), 1);
    EXPECT_EQ(first_difference(guarded.net.state(), expected), "");
  }
}

TEST(Innocence, an_exception_of_the_program_passes_and_its_step_never_happened) {
  struct Own {
    int number;
  };
  const std::vector<Batch> all = batches(8);
  TinyTraining never;
  train_without_probe(never, all);
  const auto expected = never.state();

  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 4) {
      try {
        guarded.probe->step({.step = 100}, [&]() -> at::Tensor {
          guarded.net.compute(all[0]);
          at::randn({7});
          throw Own{42};
        });
        FAIL() << "the exception was swallowed";
      } catch (const Own& own) {
        EXPECT_EQ(own.number, 42);
      }
      for (const at::Tensor& p : guarded.net.parameters) EXPECT_FALSE(p.grad().defined());
    }
    ASSERT_TRUE(guarded.step(static_cast<std::int64_t>(i), all[i]).ok());
  }
  EXPECT_EQ(guarded.probe->incidents(), 0);
  EXPECT_EQ(first_difference(guarded.net.state(), expected), "");
}

}  // namespace
}  // namespace nanquest::guard::testing
