// A LibTorch program that does not use nanquest: trains in the way that its first argument names, and prints
// every loss and a sum over the weights' bits, so that two runs can be compared bit for bit.
//
//     trains WAY [BAD]     BAD: in this step (from 0) the batch holds a NaN
#include <torch/torch.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

constexpr int kSteps = 12;

std::string way;
int bad = -1;

torch::Tensor batch(int step) {
  auto x = torch::randn({8, 6});
  if (step == bad) x[3][2] = std::numeric_limits<float>::quiet_NaN();
  return x;
}

torch::Tensor target(const torch::Tensor& x) {
  return x.sum(1, true).nan_to_num() * 0.5;
}

torch::nn::Sequential network() {
  return torch::nn::Sequential(torch::nn::Linear(6, 16), torch::nn::BatchNorm1d(16), torch::nn::Tanh(),
                               torch::nn::Linear(16, 1));
}

void tell(int step, const torch::Tensor& loss) {
  std::printf("%d %a\n", step, static_cast<double>(loss.item<float>()));
}

void tell(const std::vector<torch::Tensor>& weights) {
  std::uint64_t sum = 0;
  for (const torch::Tensor& weight : weights) {
    const torch::Tensor values = weight.detach().contiguous();
    const auto* words = static_cast<const std::uint32_t*>(values.data_ptr());
    for (std::int64_t i = 0; i < values.numel(); ++i) sum = sum * 1099511628211ull + words[i];
  }
  std::printf("weights %016llx\n", static_cast<unsigned long long>(sum));
}

/// The usual loop with the requested additions.
void train(torch::nn::Sequential model, torch::optim::Optimizer& optimizer) {
  for (int step = 0; step < kSteps; ++step) {
    const int micro = way == "accumulates" ? 3 : 1;
    optimizer.zero_grad();
    torch::Tensor loss;
    for (int i = 0; i < micro; ++i) {
      const auto x = batch(i == micro - 1 ? step : -2);
      loss = torch::mse_loss(model->forward(x), target(x));
      if (way == "raises" && !std::isfinite(loss.item<float>()))
        throw std::runtime_error("the loss is not finite");
      if (way == "leaves_out" && !std::isfinite(loss.item<float>())) break;
      loss.backward();
    }
    tell(step, loss);
    if (way == "leaves_out" && !std::isfinite(loss.item<float>())) continue;
    if (way == "clips") (void)torch::nn::utils::clip_grad_norm_(model->parameters(), 0.5);
    optimizer.step();
    if (way == "evaluates") {
      model->eval();
      for (int i = 0; i < 3; ++i) std::printf("eval %a\n", model->forward(batch(-2)).sum().item<float>());
      model->train();
    }
    if (way == "exits" && step == 5) std::exit(3);
  }
  tell(model->parameters());
}

/// Two networks that train each other in turn.
void train_pair() {
  auto maker = torch::nn::Sequential(torch::nn::Linear(4, 6)),
       judge = torch::nn::Sequential(torch::nn::Linear(6, 1));
  torch::optim::Adam of_maker(maker->parameters(), 1e-2), of_judge(judge->parameters(), 1e-2);
  for (int step = 0; step < kSteps; ++step) {
    judge->zero_grad();
    const auto fake = maker->forward(torch::randn({8, 4}));
    auto loss = torch::softplus(-judge->forward(batch(step))).mean() +
                torch::softplus(judge->forward(fake.detach())).mean();
    loss.backward();
    of_judge.step();
    maker->zero_grad();
    torch::softplus(-judge->forward(fake)).mean().backward();
    of_maker.step();
    tell(step, loss);
  }
  tell(maker->parameters());
}

/// No module and no optimizer.
void train_by_hand() {
  auto w = torch::randn({6, 1}, torch::requires_grad()), b = torch::zeros({1}, torch::requires_grad());
  for (int step = 0; step < kSteps; ++step) {
    const auto x = batch(step);
    const auto loss = torch::mse_loss(x.mm(w) + b, target(x));
    loss.backward();
    tell(step, loss);
    for (auto& weight : {w, b}) {
      weight.data().sub_(weight.grad() * 0.05);
      weight.mutable_grad().reset();
    }
  }
  tell({w, b});
}

void recur() {
  torch::nn::GRU layer(torch::nn::GRUOptions(6, 5).batch_first(true));
  torch::nn::LSTMCell cell(6, 5);
  std::vector<torch::Tensor> weights = layer->parameters();
  for (const auto& each : cell->parameters()) weights.push_back(each);
  torch::optim::RMSprop optimizer(weights, torch::optim::RMSpropOptions(1e-2));
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const auto x = batch(step);
    auto state = std::make_tuple(torch::zeros({8, 5}), torch::zeros({8, 5}));
    for (int i = 0; i < 4; ++i) state = cell->forward(x, state);
    const auto loss =
        std::get<0>(state).square().mean() + std::get<0>(layer->forward(x.unsqueeze(0))).square().mean();
    loss.backward();
    optimizer.step();
    tell(step, loss);
  }
  tell(weights);
}

void run() {
  if (way == "by_hand") return train_by_hand();
  if (way == "pair") return train_pair();
  if (way == "recurs") return recur();
  auto model = network();
  if (way == "infers") {
    const torch::NoGradGuard no_grad;
    std::printf("%a\n", model->forward(batch(0)).sum().item<float>());
    return;
  }
  if (way == "adam") {
    torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2));
    return train(model, optimizer);
  }
  torch::optim::SGD optimizer(model->parameters(),
                              torch::optim::SGDOptions(way == "runs_away" ? 1e12 : 0.05).momentum(0.9));
  train(model, optimizer);
}

}  // namespace

int main(int argc, char** argv) {
  way = argc > 1 ? argv[1] : "sgd";
  if (argc > 2) bad = std::atoi(argv[2]);
  torch::manual_seed(7);
  if (way == "on_a_thread")
    std::thread(run).join();
  else
    run();
}
