// The loop of before.cpp with nanquest's fallback: the bad step is undone and recorded, the run continues in
// fp32 with half the learning rate, and learns. Its run directory is ./run.
#include <iostream>

#include <torch/torch.h>
#include <nanquest/trainer/loop/ladder.h>
#include <nanquest/trainer/optim/adamw.h>
#include <nanquest/trainer/precision/autocast.h>
using namespace nanquest::trainer;

int main() {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(16, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  auto x = torch::randn({512, 16}), y = x.slice(1, 0, 4).sum(1, true);
  x[100] *= 1e5;

  const double peak = 3e-3;
  auto probe = nanquest::Probe::create({.run_dir = "run"}).value();
  NamedTensors weights;
  for (auto& p : model->named_parameters()) weights.emplace_back(p.key(), p.value());
  for (auto& [name, p] : weights) probe->watch_parameter(name, p);
  auto optimizer = make_adamw(weights, {}).value();
  probe->watch_optimizer([&] { return optimizer->state(); });
  Counters counters;
  Ladder ladder({}, {}, at::kHalf, Learned(*optimizer, {}, at::kCPU), counters, {[](auto& line) { std::cerr << line << '\n'; }});
  Ladder::Answer now;
  double loss_value = 0;
  for (int64_t batch = 0; batch < 400 && ladder.keep().next != Ladder::Next::stop; batch += now.next != Ladder::Next::again) {
    auto rows = torch::arange(batch * 8, batch * 8 + 8).remainder(512);
    const double rate = peak * counters.backoff, scale = ladder.loss_scale();
    auto report = probe->step({.step = counters.optimizer_step, .lr = rate, .loss_scale = scale}, [&] {
      AutocastGuard autocast(at::kCPU, ladder.format());
      auto loss = torch::mse_loss(model->forward(x.index({rows})).to(torch::kFloat), y.index({rows}));
      (loss * scale).backward();
      return loss;
    });
    if (now = ladder.after(report); now.next != Ladder::Next::update) continue;
    now = ladder.updated(probe->update(counters.optimizer_step, [&] {
      optimizer->scale_gradients(report.clip_coefficient(1.0));
      optimizer->step(rate);
    }));
    loss_value = report.loss;
  }
  (void)save_state("run/state.safetensors", ladder.present());
  std::cout << "loss " << loss_value << ", " << counters.incidents << " incidents, rate times " << counters.backoff << '\n';
  return static_cast<int>(probe->finish("finished") ? 0 : 1);
}
