// Gradients in fp16: how many become zero, how a loss scale prevents that, and when to clip.
//
// A small decoder learns pictures of 2048 numbers, with a loss that has weight 0.03 beside others (which are
// left out here). The mean over all numbers of a batch makes each gradient tiny: around 6e-8, which is where
// fp16 ends. Half of them become zero at once, and more as the loss falls, until nothing changes any more:
// the run is finite and has stopped learning. The same loss times 65536 keeps them all, if the gradient is
// divided by that before it is used.
//
// usage: gradients      prints "what … number", one a line
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <string>

#include "trainer/optim/adamw.h"
#include "trainer/precision/autocast.h"
#include "trainer/precision/grad_scaler.h"

namespace {

using namespace nanquest::trainer;

constexpr std::int64_t kSamples = 64, kNumbers = 2048, kSteps = 120;
constexpr double kWeight = 0.03;

void tell(const std::string& what, double number) {
  std::printf("%-64s %.6g\n", what.c_str(), number);
}

double norm_of(const NamedTensors& weights) {
  double squares = 0;
  for (const auto& [name, p] : weights) squares += p.grad().to(at::kDouble).square().sum().item<double>();
  return std::sqrt(squares);
}

/// Pictures that a decoder of eight numbers can learn, and such a decoder.
struct Problem {
  at::Tensor x, y;
  NamedTensors weights;

  Problem() {
    at::manual_seed(1);
    x = at::randn({kSamples, 16});
    y = at::tanh(x.mm(at::randn({16, 8}) / 4)).mm(at::randn({8, kNumbers})) * 0.035;
    const auto weight = [&](const char* name, at::Tensor values) {
      weights.emplace_back(name, values.clone().set_requires_grad(true));
    };
    weight("in.weight", at::randn({32, 16}) / 4);
    weight("in.bias", at::zeros({32}));
    weight("out.weight", at::randn({kNumbers, 32}) * 0.02);
    weight("out.bias", at::zeros({kNumbers}));
  }
  at::Tensor output(at::ScalarType format) const {
    const AutocastGuard autocast(at::kCPU, format);
    const at::Tensor h = at::tanh(at::linear(x, weights[0].second, weights[1].second));
    return at::linear(h, weights[2].second, weights[3].second);
  }
  at::Tensor loss(const at::Tensor& output) const { return at::mse_loss(output.to(at::kFloat), y) * kWeight; }
};

/// Trains and prints; the loss is printed relative to the loss of predicting zero.
void train(const std::string& name, at::ScalarType format, GradScaler scaler) {
  const Problem problem;
  auto adamw = make_adamw(problem.weights, {.eps = 1e-12}).value();
  double zeros_at_first = 0, zeros_at_last = 0, loss = 0;
  for (std::int64_t step = 0; step < kSteps; ++step) {
    adamw->clear_gradients();
    const at::Tensor output = problem.output(format);
    output.retain_grad();
    const at::Tensor now = problem.loss(output);
    (now * scaler.scale()).backward();
    adamw->scale_gradients(1 / scaler.scale());  // before the gradients are read
    loss = now.item<double>() / (problem.y.square().mean().item<double>() * kWeight);
    zeros_at_last = output.grad().eq(0).to(at::kFloat).mean().item<double>();
    if (step == 0) zeros_at_first = zeros_at_last;
    if (!std::isfinite(norm_of(problem.weights))) {
      (void)scaler.overflow(step);  // overflow: this step is left out, and the scale halves
      continue;
    }
    adamw->step(3e-3);
    scaler.good_step(step);
  }
  tell(name + ": share of zeros in the first gradient", zeros_at_first);
  tell(name + ": share of zeros in the last gradient", zeros_at_last);
  tell(name + ": loss at the end", loss);
  tell(name + ": steps left out", static_cast<double>(scaler.overflows()));
  tell(name + ": log2 of the scale at the end", std::log2(scaler.scale()));
}

/// Clips a gradient that was computed with a scale: after dividing by it, and before.
void clip() {
  constexpr double kScale = 65536, kLargest = 5e-5;
  const auto left_of = [&](bool unscale_first) {
    const Problem problem;
    auto adamw = make_adamw(problem.weights, {}).value();
    (problem.loss(problem.output(at::kHalf)) * kScale).backward();
    if (unscale_first) adamw->scale_gradients(1 / kScale);
    const double norm = norm_of(problem.weights);
    if (norm > kLargest) adamw->scale_gradients(kLargest / norm);
    if (!unscale_first) adamw->scale_gradients(1 / kScale);
    tell(std::string("clipped ") + (unscale_first ? "after" : "before") +
             " dividing by the scale: norm before",
         norm);
    tell(std::string("clipped ") + (unscale_first ? "after" : "before") + " dividing by the scale: norm left",
         norm_of(problem.weights));
  };
  left_of(true);
  left_of(false);
  // A clip can't repair this: the factor is 1 / infinity, and 0 times infinity is NaN.
  const Problem problem;
  auto adamw = make_adamw(problem.weights, {}).value();
  problem.loss(problem.output(at::kHalf)).backward();
  problem.weights[0].second.grad().view({-1})[0].fill_(std::numeric_limits<double>::infinity());
  adamw->scale_gradients(kLargest / norm_of(problem.weights));
  double nan = 0, zero = 0, all = 0;
  for (const auto& [name, p] : problem.weights) {
    nan += p.grad().isnan().sum().item<double>();
    zero += p.grad().eq(0).sum().item<double>();
    all += static_cast<double>(p.numel());
  }
  tell("one infinity, clipped: elements that are NaN now", nan);
  tell("one infinity, clipped: share of elements that are zero now", zero / all);
}

}  // namespace

int main() {
  at::set_num_threads(1);
  tell("smallest number of fp16", 0x1p-24);
  const auto fixed = [](double scale) { return GradScaler({.initial = scale, .ceiling = scale}, true); };
  train("fp32", at::kFloat, fixed(1));
  train("fp16", at::kHalf, fixed(1));
  train("fp16 times 65536", at::kHalf, fixed(65536));
  train("fp16 from 2^40 down", at::kHalf, fixed(0x1p40));
  clip();
  return 0;
}
