// The loop in failures: five tests that the program it descends from would fail.
#include "tests/trainer/loop_fixture.h"

#include <cmath>

#include "trainer/checkpoint/safetensors.h"

namespace nanquest::trainer {
namespace {

using test::differences;
using test::Folder;
using test::make_trainer;
using test::nan_loss;
using test::quick_config;
using test::quick_model;
using test::train;

// (a) After one non-finite step the rate is half the undisturbed curve for the whole rest of the run.
TEST(Acceptance, BackoffSticksUnderTheSchedule) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 140);
  config.amp = at::kHalf;
  config.injections = {nan_loss(20, 1, true)};
  const auto run = train(folder, config, quick_model());
  EXPECT_EQ(run->summary.exit, ExitCode::finding);
  ASSERT_TRUE(run->summary.counters.fell_back);
  EXPECT_EQ(run->summary.counters.skipped, 0);  // the batch itself was taken in fp32
  std::int64_t later = 0;
  for (const StepEvent& e : run->steps) {
    if (e.gate != Gate::ok) continue;
    const double untouched = config.schedule.lr(e.step, 1.0);
    EXPECT_DOUBLE_EQ(e.lr, e.step < 20 ? untouched : 0.5 * untouched) << e.step;
    if (e.step == 120) ++later;
  }
  EXPECT_EQ(later, 1);  // a hundred steps after the fallback was among them
  EXPECT_EQ(run->summary.counters.optimizer_step, 140);
  EXPECT_EQ(run->summary.final_format, "fp32");
}

// (b) One infinite gradient element in bf16 with a finite loss: not one bit of the state moves.
TEST(Acceptance, InfiniteGradientInBf16LeavesEveryBit) {
  for (const Level level : {Level::guard, Level::off}) {
    const Folder folder;
    LoopConfig config = quick_config(folder, 30);
    config.amp = at::kBFloat16;
    config.level = level;
    config.policy = Policy::skip;
    config.stop_after = 6;
    const auto clean = train(folder, config, quick_model());
    const TrainState before = clean->trainer->save();

    const Folder other;
    config.run_dir = other / "run";
    config.policy = Policy::stop;
    config.stop_after = 0;
    config.injections = {{Injection::Kind::inf_gradient, 6, 1, false}};
    const auto hit = train(other, config, quick_model());
    EXPECT_EQ(hit->summary.exit, ExitCode::non_finite);
    EXPECT_EQ(hit->summary.counters.optimizer_step, 6);
    EXPECT_EQ(differences(before, hit->trainer->save()), std::vector<std::string>{});
    EXPECT_EQ(hit->summary.incidents.size(), level == Level::guard ? 1u : 0u);
    for (const std::string& path : hit->summary.incidents) EXPECT_TRUE(std::filesystem::exists(path));
  }
}

/// Batch norm over embeddings; a batch that holds the byte '!' is fed in with an infinity.
class NormedModel final : public Model {
 public:
  NormedModel() {
    at::manual_seed(1);
    table_ = (at::randn({256, 8}) * 0.1).set_requires_grad(true);
    head_ = (at::randn({256, 8}) * 0.1).set_requires_grad(true);
  }
  at::Tensor forward(const at::Tensor& tokens, bool training) override {
    at::Tensor x = at::embedding(table_, tokens);
    if (training && calls_++ == 5) x = x * INFINITY;
    x = at::batch_norm(x.reshape({-1, 8}), {}, {}, mean_, variance_, training, 0.1, 1e-5, false);
    return at::linear(x, head_).reshape({tokens.size(0), tokens.size(1), 256});
  }
  NamedTensors parameters() const override { return {{"table", table_}, {"head", head_}}; }
  NamedTensors buffers() const override { return {{"mean", mean_}, {"variance", variance_}}; }

 private:
  at::Tensor table_, head_, mean_ = at::zeros({8}), variance_ = at::ones({8});
  int calls_ = 0;
};

// (c) Infinity in the input of a batch-norm model: the running statistics are as before.
TEST(Acceptance, RunningStatisticsSurviveAnInfiniteInput) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 30);
  config.level = Level::off;  // nothing is recorded, but what failed is undone
  config.stop_after = 5;
  const auto clean = train(folder, config, std::make_unique<NormedModel>());
  const Folder other;
  config.run_dir = other / "run";
  config.stop_after = 0;
  config.policy = Policy::stop;
  const auto hit = train(other, config, std::make_unique<NormedModel>());
  ASSERT_EQ(hit->summary.exit, ExitCode::non_finite);
  EXPECT_EQ(differences(clean->trainer->save(), hit->trainer->save()), std::vector<std::string>{});
  EXPECT_TRUE(all_finite(hit->trainer->task().buffers()));
}

// (d) Non-finite steps in a row: the run ends with its code and the last good state loads.
TEST(Acceptance, EndlessNonFiniteStepsEndTheRunWithAGoodCheckpoint) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 60);
  config.policy = Policy::skip;
  config.rollback_limit = 0;
  config.injections = {nan_loss(10, 1000)};
  const auto run = train(folder, config, quick_model());
  EXPECT_EQ(run->summary.exit, ExitCode::non_finite);
  EXPECT_EQ(run->summary.counters.skipped, 5);
  EXPECT_EQ(run->summary.counters.optimizer_step, 10);
  auto state = load_state(run->summary.state_file);
  ASSERT_TRUE(state) << state.error().text();
  EXPECT_TRUE(all_finite(state->tensors));
  EXPECT_EQ(run->summary.skipped_samples.size(), 20u);
}

/// A model with a weight that no output depends on: it can be broken while every loss looks fine.
class SpareModel final : public Model {
 public:
  SpareModel() : inner_(quick_model()) {}
  at::Tensor forward(const at::Tensor& tokens, bool training) override {
    return inner_->forward(tokens, training);
  }
  NamedTensors parameters() const override {
    NamedTensors all = inner_->parameters();
    all.emplace_back("spare", spare_);
    return all;
  }

 private:
  std::unique_ptr<Model> inner_;
  at::Tensor spare_ = at::ones({3}).set_requires_grad(true);
};

// (e) "Best" (and final, and the checkpoint) never hold a non-finite value, whatever the metric is.
TEST(Acceptance, BestIsNeverNonFinite) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 12);
  config.eval_every = 3;
  config.ring_every = 100;
  config.level = Level::off;  // the probe would find it at once
  auto model = std::make_unique<SpareModel>();
  const at::Tensor spare = model->parameters().back().second;
  std::vector<double> held_out;
  std::string told;
  auto trainer = make_trainer(folder, config, std::move(model),
                              {[&](const StepEvent& e) {
                                 for (const Metric& m : e.held_out) held_out.push_back(m.value);
                                 const at::NoGradGuard no_grad;
                                 if (e.step == 4) spare[0] = std::nan("");
                               },
                               [&](const std::string& m) { told += m + '\n'; }});
  ASSERT_TRUE(trainer);
  auto summary = (*trainer)->run();
  ASSERT_TRUE(summary) << summary.error().text();
  ASSERT_EQ(held_out.size(), 3u);
  EXPECT_LT(held_out[1], held_out[0]);  // better by the metric, and yet:
  EXPECT_EQ(summary->best_eval_loss, held_out[0]);
  EXPECT_EQ(summary->exit, ExitCode::state_corrupt) << told;
  for (const std::string& name : {config.run_dir + "/checkpoints/best.safetensors",
                                  config.run_dir + "/checkpoints/final.safetensors", summary->state_file}) {
    auto file = read_safetensors(name);
    ASSERT_TRUE(file);
    EXPECT_TRUE(all_finite(file->tensors)) << name;
  }
}

}  // namespace
}  // namespace nanquest::trainer
