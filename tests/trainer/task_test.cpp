// The loop with a task and an optimizer from outside: no bytes, no GPT, no AdamW.
#include "trainer/task/task.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <cmath>

#include "tests/trainer/loop_fixture.h"
#include "trainer/text/next_token.h"

namespace nanquest::trainer {
namespace {

using test::differences;
using test::Folder;

/// A linear regression in which some samples don't count, measured in two ways.
class Regression final : public Task {
 public:
  Regression() {
    const auto generator = at::make_generator<at::CPUGeneratorImpl>(5);
    x_ = at::empty({48, 4}).normal_(0, 1, generator);
    const at::Tensor truth = at::empty({4, 2}).normal_(0, 1, generator);
    y_ = at::mm(x_, truth);
    counts_ = at::arange(48).remainder(3).ne(0);
    weight_ = at::zeros({4, 2}).set_requires_grad(true);
  }

  NamedTensors parameters() const override { return {{"weight", weight_}}; }
  NamedTensors buffers() const override { return {{"seen", seen_}}; }
  std::int64_t train_samples() const override { return 40; }
  Batch train_batch(std::int64_t position, std::int64_t size) const override {
    return rows(at::arange(position, position + size).remainder(40));
  }
  std::int64_t eval_samples() const override { return 8; }
  Batch eval_batch(std::int64_t first, std::int64_t size) const override {
    return rows(at::arange(40 + first, 40 + first + size));
  }
  std::int64_t loss_count(const Batch& batch) const override {
    return batch.tensors[2].second.sum().item<std::int64_t>();
  }
  at::Tensor loss_sum(const NamedTensors& t, bool training) override {
    if (training) seen_.add_(t[0].second.size(0));
    return (error(t).square().sum(1) * t[2].second).sum();
  }
  Tally tally(const Batch& batch, const NamedTensors& t) override {
    Tally tally = Task::tally(batch, t);
    tally["absolute"] = (error(t).abs().sum(1) * t[2].second).sum().item<double>();
    return tally;
  }
  std::vector<Metric> metrics(const Tally& tally) const override {
    std::vector<Metric> all = Task::metrics(tally);
    all.push_back({"error", tallied(tally, "absolute") / tallied(tally, "count")});
    return all;
  }
  std::string fingerprint() const override { return "regression"; }

 private:
  at::Tensor error(const NamedTensors& t) const { return at::mm(t[0].second, weight_) - t[1].second; }
  Batch rows(const at::Tensor& which) const {
    Batch batch{{{"x", x_.index_select(0, which)},
                 {"y", y_.index_select(0, which)},
                 {"counts", counts_.index_select(0, which)}},
                {},
                {}};
    for (std::int64_t i = 0; i < which.size(0); ++i)
      batch.ids.push_back("row " + std::to_string(which[i].item<std::int64_t>()));
    return batch;
  }

  at::Tensor x_, y_, counts_, weight_, seen_ = at::zeros({}, at::kLong);
};

/// Gradient descent with momentum.
class Momentum final : public Optimizer {
 public:
  explicit Momentum(NamedTensors parameters) : Optimizer(std::move(parameters)) {
    for (const auto& [name, p] : this->parameters())
      velocity_.emplace_back("velocity." + name, at::zeros_like(p, p.options().requires_grad(false)));
  }
  void step(double lr) override {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < velocity_.size(); ++i) {
      velocity_[i].second.mul_(0.5).add_(parameters()[i].second.grad());
      at::Tensor(parameters()[i].second).sub_(velocity_[i].second, lr);
    }
  }
  NamedTensors state() const override { return velocity_; }

 private:
  NamedTensors velocity_;
};

LoopConfig config_for(const Folder& folder) {
  LoopConfig c = test::quick_config(folder, 30);
  c.schedule = {.peak = 0.05, .warmup_steps = 1, .total_steps = 30};
  c.eval_every = 10;
  c.grad_clip = 0;
  return c;
}

std::unique_ptr<test::Run> train(const LoopConfig& config) {
  auto run = std::make_unique<test::Run>();
  auto task = std::make_unique<Regression>();
  auto optimizer = std::make_unique<Momentum>(task->parameters());
  auto trainer = Trainer::create(config, std::move(task), std::move(optimizer),
                                 {[told = run.get()](const StepEvent& e) { told->steps.push_back(e); },
                                  [told = run.get()](const std::string& m) { told->messages.push_back(m); }});
  EXPECT_TRUE(trainer) << trainer.error().text();
  run->trainer = std::move(*trainer);
  auto summary = run->trainer->run();
  EXPECT_TRUE(summary) << summary.error().text();
  run->summary = *summary;
  return run;
}

TEST(OwnTask, LearnsAndIsMeasuredInItsOwnWay) {
  const Folder folder;
  const auto run = train(config_for(folder));
  EXPECT_EQ(run->summary.exit, ExitCode::ok);
  EXPECT_LT(run->summary.last_loss, 0.5 * run->summary.first_loss);
  std::vector<double> loss, error;
  for (const StepEvent& e : run->steps) {
    if (e.held_out.empty()) continue;
    ASSERT_EQ(e.held_out.size(), 2u);
    EXPECT_EQ(e.held_out[0].name, "loss");
    EXPECT_EQ(e.held_out[1].name, "error");
    loss.push_back(e.held_out[0].value);
    error.push_back(e.held_out[1].value);
  }
  ASSERT_EQ(loss.size(), 2u);
  EXPECT_LT(loss[1], loss[0]);
  EXPECT_LT(error[1], error[0]);
  EXPECT_EQ(run->summary.best_eval_loss, run->summary.eval_loss);
  std::int64_t counted = 0;  // samples that don't count are not called trained on
  for (std::int64_t i = 0; i < 30 * 4; ++i) counted += (i % 40) % 3 != 0;
  EXPECT_EQ(run->summary.counters.tokens, counted);
}

TEST(OwnTask, MicroBatchesOfDifferentCountShareOneDenominator) {
  const auto losses = [](std::int64_t parts) {
    const Folder folder;
    LoopConfig config = config_for(folder);
    config.micro_batches = parts;
    std::vector<double> values;
    const auto run = train(config);
    for (const StepEvent& e : run->steps) values.push_back(e.loss);
    return values;
  };
  const auto whole = losses(1), parts = losses(4);
  ASSERT_EQ(whole.size(), 30u);
  ASSERT_EQ(parts.size(), 30u);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], parts[i], 1e-4 * whole[i]) << i;
}

TEST(OwnTask, IsTakenUpAgainBitForBitWithItsOwnOptimizer) {
  const Folder folder, other;
  LoopConfig config = config_for(folder);
  const TrainState whole = train(config)->trainer->save();
  EXPECT_EQ(whole.tensors[2].first, "velocity.weight");
  config.run_dir = other / "run";
  config.stop_after = 13;
  (void)train(config);
  config.stop_after = 0;
  config.resume = true;
  EXPECT_EQ(differences(whole, train(config)->trainer->save()), std::vector<std::string>{});
}

TEST(OwnTask, ABadStepIsUndoneAndItsSamplesAreNamed) {
  for (const Level level : {Level::off, Level::guard}) {
    const Folder folder;
    LoopConfig config = config_for(folder);
    config.level = level;
    config.policy = Policy::skip;
    config.injections = {{Injection::Kind::nan_loss, 1, 1, false}};
    const auto run = train(config);
    EXPECT_EQ(run->summary.exit, ExitCode::finding);
    EXPECT_EQ(run->summary.skipped_samples, (std::vector<std::string>{"row 4", "row 5", "row 6", "row 7"}));
    EXPECT_EQ(run->trainer->task().buffers()[0].second.item<std::int64_t>(), 30 * 4)
        << "the bad batch was seen";
  }
}

TEST(TextTask, CountsWhatItsLossAddsUp) {
  const Folder folder;
  const auto task = make_text_task(test::quick_model(), test::quick_data(folder));
  Batch batch = task->train_batch(0, 3);
  EXPECT_EQ(batch.tensors[0].first, "tokens");
  EXPECT_EQ(batch.tensors[1].first, "targets");
  EXPECT_EQ(task->loss_count(batch), 3 * 16);
  const double all = task->loss_sum(batch.tensors, false).item<double>();
  batch.tensors[1].second.slice(1, 4).fill_(-100);
  EXPECT_EQ(task->loss_count(batch), 3 * 4);
  EXPECT_LT(task->loss_sum(batch.tensors, false).item<double>(), all);
  const Tally tally = task->tally(batch, batch.tensors);
  EXPECT_NEAR(task->metrics(tally)[0].value, task->loss_sum(batch.tensors, false).item<double>() / 12, 1e-9);
  EXPECT_TRUE(std::isnan(task->metrics({})[0].value));
}

// Compared with the formula, term by term, and with its gradient 2 z softmax.
TEST(NextToken, ZLossIsTheSquaredLogOfSoftmaxsSum) {
  at::manual_seed(3);
  const at::Tensor logits = (at::randn({1, 3, 5}) * 4).set_requires_grad(true);
  const at::Tensor targets = at::tensor(std::vector<std::int64_t>{1, -100, 4}).reshape({1, 3});
  const double weight = 0.25, without = next_token_loss(logits, targets).item<double>();
  const at::Tensor loss = next_token_loss(logits, targets, weight);
  double wanted = without;
  for (const std::int64_t row : {0, 2}) {
    double sum = 0;
    for (std::int64_t i = 0; i < 5; ++i) sum += std::exp(logits[0][row][i].item<double>());
    wanted += weight * std::log(sum) * std::log(sum);
  }
  EXPECT_NEAR(loss.item<double>(), wanted, 1e-4);
  (loss - next_token_loss(logits, targets)).backward();
  const at::Tensor rows = logits.detach()[0], sums = at::logsumexp(rows, -1, true);
  at::Tensor gradient = 2 * weight * sums * rows.softmax(-1);
  gradient[1].zero_();  // left out
  EXPECT_TRUE(at::allclose(logits.grad()[0], gradient, 1e-4, 1e-5));
}

}  // namespace
}  // namespace nanquest::trainer
