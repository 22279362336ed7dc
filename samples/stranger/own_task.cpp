// A task outside nanquest, trained by nanquest's loop: its own model, data and loss; the guard, the loss
// scale, the policies, checkpoints and resuming are nanquest's. The learning rate is far too high for half
// precision: the run falls back to fp32 and a smaller rate, and continues to learn.
// Usage: own_task [RUN_DIR]
#include <iostream>

#include <ATen/ATen.h>
#include <nanquest/trainer/loop/trainer.h>
#include <nanquest/trainer/optim/adamw.h>

using namespace nanquest::trainer;

/// Four numbers out of eight, by one matrix.
class Linear final : public Task {
 public:
  NamedTensors parameters() const override { return {{"weight", weight_}}; }
  int64_t train_samples() const override { return 64; }
  Batch train_batch(int64_t position, int64_t size) const override {
    auto rows = at::arange(position, position + size).remainder(train_samples());
    Batch batch{{{"x", x_.index_select(0, rows)}, {"y", y_.index_select(0, rows)}}, {}, {}};
    for (int64_t i = 0; i < size; ++i) batch.ids.push_back("row " + std::to_string((position + i) % train_samples()));
    return batch;
  }
  int64_t loss_count(const Batch& batch) const override { return batch.tensors[1].second.numel(); }
  at::Tensor loss_sum(const NamedTensors& t, bool) override {
    return (at::mm(t[0].second, weight_).to(at::kFloat) - t[1].second).square().sum();
  }

 private:
  at::Tensor x_ = 30 * at::randn({64, 8}), y_ = at::mm(x_, at::randn({8, 4}));
  at::Tensor weight_ = at::zeros({8, 4}).requires_grad_();
};

int main(int argc, char** argv) {
  at::manual_seed(1);
  LoopConfig config;
  config.run_dir = argc > 1 ? argv[1] : "run";
  config.steps = 400;
  config.amp = at::kHalf;
  config.lr_backoff = 0.02;
  config.schedule = {.peak = 40, .warmup_steps = 8, .total_steps = config.steps};
  auto task = std::make_unique<Linear>();
  auto adamw = make_adamw(task->parameters(), {}).value();
  auto trainer = Trainer::create(config, std::move(task), std::move(adamw),
                                 {{}, [](const std::string& line) { std::cerr << line << '\n'; }});
  if (!trainer) { std::cerr << trainer.error().text() << '\n'; return nanquest::exit_code(trainer.error().code); }
  auto summary = trainer.value()->run();
  if (!summary) { std::cerr << summary.error().text() << '\n'; return nanquest::exit_code(summary.error().code); }
  std::cout << "loss " << summary->first_loss << " at the start, " << summary->last_loss << " at the end, in "
            << summary->final_format << '\n';
  return static_cast<int>(summary->exit);
}
