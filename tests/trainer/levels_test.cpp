// The probe does not change the training: at every level the same weights, bit for bit, whatever the loss
// scale does.
#include "tests/trainer/loop_fixture.h"
#include "trainer/precision/autocast.h"

namespace nanquest::trainer {
namespace {

using test::differences;
using test::Folder;
using test::quick_config;
using test::quick_model;
using test::train;

TEST(Probe, ChangesNoBitOfTraining) {
  const auto state_at = [](Level level, at::ScalarType amp) {
    const Folder folder;
    LoopConfig config = quick_config(folder, 25);
    config.level = level;
    config.amp = amp;
    config.eval_every = 10;
    return train(folder, config, quick_model(0.1))->trainer->save();
  };
  for (const at::ScalarType amp : {at::kFloat, at::kHalf, at::kBFloat16})
    EXPECT_EQ(differences(state_at(Level::off, amp), state_at(Level::guard, amp)),
              std::vector<std::string>{});
}

/// A run in fp16 whose first step overflows until the scale is 2^11 or so, and that goes on growing it.
LoopConfig calibrating(const Folder& folder) {
  LoopConfig config = quick_config(folder, 40);
  config.amp = at::kHalf;
  config.grad_clip = 0;  // so that the loop by hand needs no norm that is equal in every bit
  config.scaler.initial = 16777216.0;
  config.scaler.growth_interval = 3;
  return config;
}

std::unique_ptr<Model> calibrating_model() {
  return std::move(
      *make_gpt({.depth = 2, .width = 32, .heads = 2, .context = 16, .norm = NormPlace::post, .init_std = 1},
                42, at::kCPU));
}

/// The same run written by hand, without the probe; returns its weights.
NamedTensors by_hand(const LoopConfig& config, const Folder& folder) {
  set_numerics(config.seed, {.deterministic = true, .threads = 1});
  const auto task = make_text_task(calibrating_model(), test::quick_data(folder));
  const auto optimizer = std::move(*make_adamw(task->parameters(), {}));
  GradScaler scaler(config.scaler);
  for (std::int64_t step = 0; step < config.steps;) {
    const Batch batch = task->train_batch(step * config.batch_size, config.batch_size);
    optimizer->clear_gradients();
    at::Tensor loss;
    {
      const AutocastGuard autocast(at::kCPU, at::kHalf);
      loss = task->loss_sum(batch.tensors, true) / static_cast<double>(task->loss_count(batch));
    }
    (loss * scaler.scale()).backward();
    NamedTensors gradients;
    for (const auto& [name, p] : task->parameters()) gradients.emplace_back(name, p.grad());
    if (!all_finite(gradients)) {
      EXPECT_TRUE(scaler.overflow(step));
      continue;
    }
    optimizer->scale_gradients(1 / scaler.scale());  // a power of two: exact
    optimizer->step(config.schedule.lr(step, 1));
    scaler.good_step(step++);
  }
  return task->parameters();
}

// An ordinary fp16 run: the scale falls from a value that is far too high, and later rises and falls.
TEST(Levels, ManyOverflowsInARowAreCalibrationAtEveryLevel) {
  const Folder data;
  const NamedTensors expected = by_hand(calibrating(data), data);
  for (const Level level : {Level::off, Level::guard, Level::trace, Level::watch}) {
    SCOPED_TRACE(static_cast<int>(level));
    const Folder folder;
    LoopConfig config = calibrating(folder);
    config.level = level;
    const auto run = train(folder, config, calibrating_model());
    std::size_t at_first = 0;
    for (const ScaleChange& change : run->summary.scale_history) at_first += change.step == 0;
    EXPECT_GT(at_first, 8u) << "the run does not try what it is for";
    EXPECT_GE(run->summary.scale_history.size(), at_first + 12);
    EXPECT_EQ(run->summary.exit, ExitCode::ok);
    EXPECT_EQ(run->summary.counters.incidents, 0);
    EXPECT_FALSE(run->summary.counters.fell_back);
    EXPECT_EQ(run->summary.counters.skipped, 0);
    EXPECT_EQ(run->summary.final_format, "fp16");
    EXPECT_EQ(run->summary.incidents, std::vector<std::string>{});
    std::size_t said = 0;
    for (const StepEvent& e : run->steps) said += e.gate == Gate::scale_overflow;
    EXPECT_GT(said, at_first);
    const NamedTensors weights = run->trainer->task().parameters();
    ASSERT_EQ(weights.size(), expected.size());
    for (std::size_t i = 0; i < weights.size(); ++i)
      EXPECT_TRUE(test::same_bits(weights[i].second, expected[i].second)) << weights[i].first;
  }
}

TEST(Scaling, AnOverflowOfTheScaleAloneIsNoIncident) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 12);
  config.amp = at::kHalf;
  config.scaler.initial = 16777216.0;
  config.scaler.ceiling = 16777216.0;
  const auto run = train(folder, config, quick_model());
  EXPECT_EQ(run->summary.exit, ExitCode::ok);
  EXPECT_EQ(run->summary.counters.incidents, 0);
  EXPECT_EQ(run->summary.counters.optimizer_step, 12);
  EXPECT_EQ(run->summary.counters.data_position, 12 * config.batch_size);  // no batch was lost
  ASSERT_FALSE(run->summary.scale_history.empty());
  EXPECT_LT(run->summary.final_scale, 16777216.0);
}

// Non-finite at every scale down to the floor: an incident that the scale did not cause.
TEST(Scaling, WhatNoScaleCuresIsAnIncidentAndLeavesTheScaleAlone) {
  for (const Level level : {Level::off, Level::guard}) {
    const Folder folder;
    LoopConfig config = quick_config(folder, 12);
    config.amp = at::kHalf;
    config.level = level;
    config.policy = Policy::skip;
    config.injections = {{Injection::Kind::inf_gradient, 5, 1, false}};
    const auto run = train(folder, config, quick_model());
    EXPECT_EQ(run->summary.exit, ExitCode::finding);
    EXPECT_EQ(run->summary.counters.incidents, 1);
    EXPECT_EQ(run->summary.counters.skipped, 1);
    EXPECT_EQ(run->summary.final_scale, config.scaler.initial);
    ASSERT_FALSE(run->summary.scale_history.empty());
    EXPECT_EQ(run->summary.scale_history.back().from, config.scaler.floor);
    EXPECT_EQ(run->summary.scale_history.back().step, 5);
  }
}

}  // namespace
}  // namespace nanquest::trainer
