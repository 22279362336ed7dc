// A training loop written with LibTorch, in fp16 by autocast. One sample's features are in the wrong unit: its batch
// leaves the range of fp16, and from then on every weight is NaN.
#include <iostream>

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

int main() {
  torch::manual_seed(1);
  torch::nn::Sequential model(torch::nn::Linear(16, 64), torch::nn::Tanh(), torch::nn::Linear(64, 1));
  auto x = torch::randn({512, 16}), y = x.slice(1, 0, 4).sum(1, true);
  x[100] *= 1e5;

  const double peak = 3e-3;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(peak).weight_decay(0));
  double loss_value = 0;
  for (int64_t batch = 0; batch < 400; ++batch) {
    auto rows = torch::arange(batch * 8, batch * 8 + 8).remainder(512);
    optimizer.zero_grad();
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
    auto loss = torch::mse_loss(model->forward(x.index({rows})).to(torch::kFloat), y.index({rows}));
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer.step();
    loss_value = loss.item<double>();
  }
  std::cout << "loss " << loss_value << '\n';
}
