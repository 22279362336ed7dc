// Resuming a loop, and a loop that fails.
#include "tests/trainer/loop_fixture.h"

#include <stdexcept>

namespace nanquest::trainer {
namespace {

using test::differences;
using test::Folder;
using test::make_trainer;
using test::nan_loss;
using test::quick_config;
using test::quick_model;
using test::train;

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

// A program that gives its settings as text is compared by them, otherwise by the loop's own.
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

/// Fails in one forward pass, after it has drawn from the generator like any other.
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

// What was trained until then is saved, and continues bit for bit as if nothing had happened.
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

/// Changes the first weight and fails, in the update of one step.
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
