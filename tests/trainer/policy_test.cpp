// Consequences of a bad step: each policy, and the ladder above them.
#include "tests/trainer/loop_fixture.h"

#include <cmath>

namespace nanquest::trainer {
namespace {

using test::differences;
using test::Folder;
using test::make_trainer;
using test::nan_loss;
using test::quick_config;
using test::quick_model;
using test::train;

TEST(Ladder, SkipsThenRollsBackThenStops) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 60);
  config.amp = at::kHalf;
  config.skip_limit = 3;
  config.rollback_limit = 2;
  config.injections = {nan_loss(10, 1000)};
  const auto run = train(folder, config, quick_model());
  const Counters& c = run->summary.counters;
  EXPECT_TRUE(c.fell_back);        // first rung
  EXPECT_EQ(c.rollbacks, 2);       // third, after each three skips
  EXPECT_EQ(c.skipped, 9);         // second: 3 + 3 + 3
  EXPECT_EQ(c.optimizer_step, 4);  // the last state but one kept in memory: the second rollback goes two back
  EXPECT_EQ(c.backoff, 0.5);       // taken once, kept through rollbacks
  EXPECT_EQ(run->summary.exit, ExitCode::non_finite);
  EXPECT_EQ(c.data_position, (10 + 9) * config.batch_size);
}

TEST(Policies, SkipIsExactlyARunThatNeverSawTheBatch) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 30);
  config.policy = Policy::skip;
  config.injections = {nan_loss(7)};
  config.amp = at::kBFloat16;
  const auto hit = train(folder, config, quick_model(0.2));
  EXPECT_EQ(hit->summary.exit, ExitCode::finding);
  EXPECT_EQ(hit->summary.counters.skipped, 1);
  EXPECT_EQ(hit->summary.counters.optimizer_step, 30);

  // The same run by hand, without the probe, with that batch left out.
  const Folder other;
  LoopConfig plain = config;
  plain.run_dir = other / "run";
  plain.injections.clear();
  plain.level = Level::off;
  plain.stop_after = 7;
  const auto first = train(other, plain, quick_model(0.2));
  TrainState state = first->trainer->save();
  state.counters.data_position += plain.batch_size;
  plain.stop_after = 0;
  auto rest = make_trainer(other, plain, quick_model(0.2));
  ASSERT_TRUE(rest);
  ASSERT_TRUE((*rest)->restore(state));
  ASSERT_TRUE((*rest)->run());
  EXPECT_EQ(differences(hit->trainer->save(), (*rest)->save()), std::vector<std::string>{});
}

TEST(Policies, RetryInFp32TakesTheSameBatchAndStaysInLowPrecision) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 20);
  config.amp = at::kHalf;
  config.policy = Policy::retry_fp32;
  config.injections = {nan_loss(5, 1, true), nan_loss(9)};  // the second fails in fp32 too
  const auto run = train(folder, config, quick_model());
  EXPECT_EQ(run->summary.exit, ExitCode::finding);
  EXPECT_EQ(run->summary.counters.incidents, 2);
  EXPECT_EQ(run->summary.counters.skipped, 1);
  EXPECT_TRUE(run->summary.counters.retried);
  EXPECT_EQ(run->summary.final_format, "fp16");
  EXPECT_EQ(run->summary.counters.backoff, 1.0);
  EXPECT_EQ(run->summary.counters.optimizer_step, 20);
  EXPECT_EQ(run->summary.counters.data_position, 21 * config.batch_size);
}

TEST(Policies, RollbackReturnsToTheLastKeptStateAndPassesTheBadBatch) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 20);
  config.policy = Policy::rollback;
  config.injections = {nan_loss(10)};
  const auto run = train(folder, config, quick_model());
  EXPECT_EQ(run->summary.exit, ExitCode::finding);
  EXPECT_EQ(run->summary.counters.rollbacks, 1);
  EXPECT_EQ(run->summary.counters.optimizer_step, 20);
  EXPECT_EQ(run->summary.counters.data_position,
            (20 + 2 + 1) * config.batch_size);  // steps 8 and 9 were taken twice
}

TEST(Policies, TheNthRollbackGoesNStatesBack) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 20);
  config.policy = Policy::rollback;
  config.rollback_limit = 4;
  config.injections = {nan_loss(18, 2), nan_loss(21, 2)};
  const auto run = train(folder, config, quick_model());
  std::string told;
  for (const std::string& m : run->messages)
    if (const auto at = m.find("back to the state before step "); at != std::string::npos)
      told += m.substr(at + 30, m.find(',', at) - at - 30) + " ";
  // States of steps 8, 12 and 16 are kept. Two batches at once: 16, then 12, and what was kept at 16 is gone.
  // Batch 20 is fine, 21 is not: three back from 12 is more than there is, so the oldest; the same for four.
  EXPECT_EQ(told, "16 12 8 8 ");
  EXPECT_EQ(run->summary.counters.rollbacks, 4);
  EXPECT_EQ(run->summary.counters.optimizer_step, 20);
  EXPECT_EQ(run->summary.exit, ExitCode::finding);
}

TEST(Policies, CorruptWeightsAreRolledBackAndSaidSo) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 20);
  config.policy = Policy::skip;
  config.stop_after = 0;
  auto model = quick_model();
  const at::Tensor weight = model->parameters().back().second;
  std::int64_t seen = 0;
  auto trainer = make_trainer(folder, config, std::move(model),
                              {[&](const StepEvent& e) {
                                 if (e.step != 9 || seen++ > 0) return;
                                 const at::NoGradGuard no_grad;
                                 weight.view({-1})[0] =
                                     INFINITY;  // as a broken kernel or a stray write would
                               },
                               {}});
  ASSERT_TRUE(trainer);
  auto summary = (*trainer)->run();
  ASSERT_TRUE(summary) << summary.error().text();
  EXPECT_EQ(summary->exit, ExitCode::state_corrupt);
  EXPECT_EQ(summary->counters.rollbacks, 1);
  EXPECT_EQ(summary->counters.optimizer_step, 20);
  EXPECT_TRUE(all_finite((*trainer)->task().parameters()));
}

}  // namespace
}  // namespace nanquest::trainer
