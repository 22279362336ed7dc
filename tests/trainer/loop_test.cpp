// The loop when things go wrong: five tests that the loop it descends from would fail, and the ladder above
// them.
#include "tests/trainer/loop_fixture.h"

#include <cmath>
#include <stdexcept>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/text/next_token.h"

namespace nanquest::trainer {
namespace {

using test::differences;
using test::Folder;
using test::make_trainer;
using test::quick_config;
using test::quick_model;
using test::train;

Injection nan_loss(std::int64_t at, std::int64_t count = 1, bool amp_only = false) {
  return {Injection::Kind::nan_loss, at, count, amp_only};
}

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

// (e) "Best" (and final, and the checkpoint) never hold a non-finite value, whatever the metric says.
TEST(Acceptance, BestIsNeverNonFinite) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 12);
  config.eval_every = 3;
  config.ring_every = 100;
  config.level = Level::off;  // the probe would notice at once
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

TEST(Accumulation, EqualsTheWholeBatch) {
  const auto losses = [](std::int64_t parts) {
    const Folder folder;
    LoopConfig config = quick_config(folder, 8);
    config.micro_batches = parts;
    const auto run = train(folder, config, quick_model());
    std::vector<double> values;
    for (const StepEvent& e : run->steps) values.push_back(e.loss);
    return values;
  };
  const auto whole = losses(1), parts = losses(4);
  ASSERT_EQ(whole.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(whole[i], parts[i], 1e-5);
}

/// Text whose targets are left out (-100) more and more from row to row, in the last one altogether.
class MaskedText final : public Task {
 public:
  explicit MaskedText(const Folder& folder) : data_(test::quick_data(folder)), model_(quick_model()) {}
  NamedTensors parameters() const override { return model_->parameters(); }
  std::int64_t train_samples() const override { return data_.train_windows(); }
  Batch train_batch(std::int64_t position, std::int64_t size) const override {
    TextWindows w = data_.train_batch(position, size);
    for (std::int64_t row = 0; row < size; ++row)
      w.targets[row].narrow(0, 0, row + 1 == size ? w.targets.size(1) : 3 * row).fill_(-100);
    return {{{"tokens", w.tokens}, {"targets", w.targets}}, w.ids, {}};
  }
  std::int64_t loss_count(const Batch& batch) const override {
    return count_targets(batch.tensors[1].second);
  }
  at::Tensor loss_sum(const NamedTensors& t, bool training) override {
    return next_token_loss(model_->forward(t[0].second, training), t[1].second);
  }
  Model& model() { return *model_; }

 private:
  TextData data_;
  std::unique_ptr<Model> model_;
};

// Parts of a batch with very different numbers of targets: loss and gradients are PyTorch's own mean over
// all.
TEST(Accumulation, CountsTargetsAsPyTorchDoes) {
  const Folder folder;
  MaskedText by_hand(folder);
  const Batch batch = by_hand.train_batch(0, 4);
  const at::Tensor logits = by_hand.model().forward(batch.tensors[0].second, true);
  const at::Tensor loss =
      at::cross_entropy_loss(logits.reshape({-1, 256}), batch.tensors[1].second.reshape({-1}), {},
                             at::Reduction::Mean, /*ignore_index=*/-100);
  loss.backward();
  double squares = 0;
  for (const auto& [name, p] : by_hand.parameters()) squares += p.grad().square().sum().item<double>();
  for (const std::int64_t parts : {1, 2, 4}) {
    LoopConfig config = quick_config(folder, 1);
    config.micro_batches = parts;
    auto task = std::make_unique<MaskedText>(folder);
    auto adamw = make_adamw(task->parameters(), {});
    std::vector<StepEvent> steps;
    auto trainer = Trainer::create(config, std::move(task), std::move(*adamw),
                                   {[&](const StepEvent& e) { steps.push_back(e); }, {}});
    ASSERT_TRUE(trainer) << trainer.error().text();
    ASSERT_TRUE((*trainer)->run());
    ASSERT_EQ(steps.size(), 1u);
    EXPECT_NEAR(steps[0].loss, loss.item<double>(), 1e-5) << parts;
    EXPECT_NEAR(steps[0].grad_norm, std::sqrt(squares), 1e-5 * std::sqrt(squares)) << parts;
  }
}

TEST(Resume, TenStepsAreFivePlusFiveBitForBit) {
  for (const at::ScalarType amp : {at::kFloat, at::kHalf}) {
    const Folder folder, other;
    LoopConfig config = quick_config(folder, 10);
    config.amp = amp;
    config.scaler.growth_interval = 3;
    config.injections = {nan_loss(2, 1, true)};
    config.policy = Policy::retry_fp32;
    const TrainState whole = train(folder, config, quick_model(0.3))->trainer->save();
    config.run_dir = other / "run";
    config.stop_after = 5;
    EXPECT_EQ(train(other, config, quick_model(0.3))->summary.outcome, "interrupted, resumable");
    config.stop_after = 0;
    config.resume = true;
    const auto resumed = train(other, config, quick_model(0.3));
    EXPECT_EQ(resumed->steps.front().step, 5);
    const TrainState parts = resumed->trainer->save();
    EXPECT_EQ(differences(whole, parts), std::vector<std::string>{});
    EXPECT_EQ(whole.counters.data_position, parts.counters.data_position);
    EXPECT_EQ(whole.counters.tokens, parts.counters.tokens);
    EXPECT_EQ(whole.scaler.scale, parts.scaler.scale);
    EXPECT_EQ(whole.scaler.good_steps, parts.scaler.good_steps);
  }
}

TEST(Resume, KeepsTheFallback) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 20);
  config.amp = at::kHalf;
  config.injections = {nan_loss(2, 1, true)};
  config.stop_after = 6;
  (void)train(folder, config, quick_model());
  config.resume = true;
  config.stop_after = 0;
  const auto run = train(folder, config, quick_model());
  EXPECT_EQ(run->summary.final_format, "fp32");
  EXPECT_EQ(run->summary.counters.backoff, 0.5);
  for (const StepEvent& e : run->steps) EXPECT_DOUBLE_EQ(e.lr, 0.5 * config.schedule.lr(e.step, 1.0));
}

TEST(Resume, RefusesOtherSettingsAndMissingCheckpoints) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 6);
  config.resume = true;
  auto missing = make_trainer(folder, config, quick_model());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::bad_file);
  config.resume = false;
  (void)train(folder, config, quick_model());
  config.resume = true;
  config.seed = 43;
  auto other = make_trainer(folder, config, quick_model());
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::usage);
  EXPECT_NE(other.error().message.find("seed is 43, was 42"), std::string::npos) << other.error().text();
  config.seed = 42;
  config.training["beta1"] = "0.8";  // unknown to the checkpoint: nothing to compare with
  EXPECT_TRUE(make_trainer(folder, config, quick_model()));
}

// A program that gives its settings as text is compared by them, one that gives none by the loop's own.
TEST(Resume, ComparesWhatTheProgramTrainsWith) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 6);
  config.training = {{"optimizer", "mine 1"}};
  config.stop_after = 2;
  (void)train(folder, config, quick_model());
  config.resume = true;
  config.training = {{"optimizer", "mine 2"}};
  config.schedule.peak = 1e-2;
  auto other = make_trainer(folder, config, quick_model());
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("lr is 0.01, was 0.003; optimizer is mine 2, was mine 1"),
            std::string::npos)
      << other.error().text();
  config.changes = {"optimizer", "lr"};
  EXPECT_EQ(train(folder, config, quick_model())->steps.front().step, 2);
}

/// Fails in one forward pass, after it has drawn from the generator as any other.
class FailingModel final : public Model {
 public:
  FailingModel(int at, bool memory) : inner_(quick_model(0.3)), at_(at), memory_(memory) {}
  at::Tensor forward(const at::Tensor& tokens, bool training) override {
    at::Tensor logits = inner_->forward(tokens, training);
    if (training && calls_++ == at_) {
      if (memory_) return at::zeros({std::int64_t{1} << 50});
      throw std::runtime_error("the model has had enough\nof this");
    }
    return logits;
  }
  NamedTensors parameters() const override { return inner_->parameters(); }
  std::string fingerprint() const override { return inner_->fingerprint(); }

 private:
  std::unique_ptr<Model> inner_;
  int at_, calls_ = 0;
  bool memory_;
};

// What was trained until then is saved, and goes on bit for bit as if nothing had happened.
TEST(Failure, AnExceptionOrNoMemoryLeavesAResumableState) {
  for (const bool memory : {false, true}) {
    const Folder folder, other;
    LoopConfig config = quick_config(folder, 10);
    config.level = memory ? Level::off : Level::guard;
    const TrainState whole = train(folder, config, quick_model(0.3))->trainer->save();
    config.run_dir = other / "run";
    auto trainer = make_trainer(other, config, std::make_unique<FailingModel>(6, memory));
    ASSERT_TRUE(trainer);
    const auto summary = (*trainer)->run();
    ASSERT_FALSE(summary);
    EXPECT_EQ(exit_code(summary.error().code), 70);
    EXPECT_TRUE(summary.error().message.starts_with(memory ? "step 6: out of memory: "
                                                           : "step 6: the model has had enough"))
        << summary.error().text();
    EXPECT_EQ(summary.error().message.find('\n'), std::string::npos);
    trainer->reset();
    config.resume = true;
    const auto resumed = train(other, config, quick_model(0.3));
    EXPECT_EQ(resumed->steps.front().step, 6);
    EXPECT_EQ(differences(whole, resumed->trainer->save()), std::vector<std::string>{});
  }
}

/// Moves the first weight and fails, in the update of one step.
class FailingOptimizer final : public Optimizer {
 public:
  FailingOptimizer(NamedTensors parameters, std::int64_t at)
      : Optimizer(std::move(parameters)), inner_(std::move(*make_adamw(this->parameters(), {}))), at_(at) {}
  void step(double lr) override {
    if (steps_++ == at_) {
      const at::NoGradGuard no_grad;
      at::Tensor(parameters().front().second).add_(1);
      throw std::runtime_error("half an update");
    }
    inner_->step(lr);
  }
  NamedTensors state() const override { return inner_->state(); }

 private:
  std::unique_ptr<Optimizer> inner_;
  std::int64_t at_, steps_ = 0;
};

TEST(Failure, HalfAnUpdateIsNotSaved) {
  const Folder folder, other;
  LoopConfig config = quick_config(folder, 10);
  const TrainState whole = train(folder, config, quick_model(0.3))->trainer->save();
  config.run_dir = other / "run";
  set_numerics(config.seed, {.deterministic = true, .threads = 1});
  auto task = make_text_task(quick_model(0.3), test::quick_data(other));
  auto optimizer = std::make_unique<FailingOptimizer>(task->parameters(), 6);
  auto trainer = Trainer::create(config, std::move(task), std::move(optimizer), {});
  ASSERT_TRUE(trainer);
  ASSERT_FALSE((*trainer)->run());
  trainer->reset();
  config.resume = true;
  const auto resumed = train(other, config, quick_model(0.3));
  EXPECT_EQ(resumed->steps.front().step, 4);  // the newest of the states kept in memory
  EXPECT_EQ(differences(whole, resumed->trainer->save()), std::vector<std::string>{});
}

TEST(Create, RefusesHalfWeightsAndUnwritablePlaces) {
  const Folder folder;
  LoopConfig config = quick_config(folder, 6);
  auto model = quick_model();
  at::Tensor(model->parameters()[0].second).set_data(model->parameters()[0].second.to(at::kHalf));
  auto half = make_trainer(folder, config, std::move(model));
  ASSERT_FALSE(half);
  EXPECT_NE(half.error().message.find("fp16"), std::string::npos);
  test::write_file(folder / "file", "x");
  config.run_dir = folder / "file/run";
  auto place = make_trainer(folder, config, quick_model());
  ASSERT_FALSE(place);
  EXPECT_EQ(place.error().code, ErrorCode::io);
}

}  // namespace
}  // namespace nanquest::trainer
