// verify against the step it replays: time(verify) / time(forward + backward + AdamW), goal 3.
#include <ATen/ATen.h>

#include <cstdio>

#include "probe/record/record.h"
#include "replay/trace/replayer.h"
#include "tests/bench/report.h"

namespace {

using namespace nanquest;

constexpr std::int64_t kBatch = 4, kTokens = 64, kWidth = 128, kHeads = 4, kDepth = 4, kVocabulary = 256;

/// A small GPT with its own AdamW: 4 layers of width 128 on 256 tokens.
struct Model {
  NamedTensors parameters, state;
  std::vector<at::Tensor> weights, means, squares, maxima, steps;
  at::Tensor ids, targets;

  at::Tensor add(const std::string& name, at::Tensor t) {
    t = t.set_requires_grad(true);
    parameters.emplace_back(name, t);
    weights.push_back(t);
    means.push_back(at::zeros_like(t));
    squares.push_back(at::zeros_like(t));
    steps.push_back(at::ones({}));
    state.emplace_back("exp_avg." + name, means.back());
    state.emplace_back("exp_avg_sq." + name, squares.back());
    state.emplace_back("step." + name, steps.back());
    return t;
  }

  Model() {
    at::manual_seed(1);
    add("embedding", at::randn({kVocabulary, kWidth}) * 0.05);
    for (std::int64_t i = 0; i < kDepth; ++i) {
      const std::string block = "blocks." + std::to_string(i) + ".";
      add(block + "norm1", at::ones({kWidth}));
      add(block + "qkv", at::randn({3 * kWidth, kWidth}) * 0.05);
      add(block + "proj", at::randn({kWidth, kWidth}) * 0.05);
      add(block + "norm2", at::ones({kWidth}));
      add(block + "up", at::randn({4 * kWidth, kWidth}) * 0.05);
      add(block + "down", at::randn({kWidth, 4 * kWidth}) * 0.05);
    }
    ids = at::randint(0, kVocabulary, {kBatch, kTokens}, at::kLong);
    targets = at::randint(0, kVocabulary, {kBatch * kTokens}, at::kLong);
  }

  at::Tensor forward() const {
    at::Tensor x = at::embedding(weights[0], ids);
    for (std::size_t i = 0; i < kDepth; ++i) {
      const at::Tensor* w = &weights[1 + i * 6];
      auto parts = at::chunk(at::linear(at::layer_norm(x, {kWidth}, w[0]), w[1]), 3, -1);
      for (auto& p : parts) p = p.view({kBatch, kTokens, kHeads, kWidth / kHeads}).transpose(1, 2);
      const auto a = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0, true);
      x = x + at::linear(a.transpose(1, 2).reshape({kBatch, kTokens, kWidth}), w[2]);
      x = x + at::linear(at::gelu(at::linear(at::layer_norm(x, {kWidth}, w[3]), w[4])), w[5]);
    }
    return at::cross_entropy_loss(at::linear(x, weights[0]).view({-1, kVocabulary}), targets);
  }

  at::Tensor step() {
    for (at::Tensor& w : weights) w.mutable_grad().reset();
    const at::Tensor loss = forward();
    loss.backward();
    const PhaseScope phase(Phase::optimizer);
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& w : weights) gradients.push_back(w.grad());
    at::_fused_adamw_(weights, gradients, means, squares, maxima, steps, 1e-4, 0.9, 0.99, 0.01, 1e-8, false,
                      false);
    return loss;
  }
};

}  // namespace

int main() {
  Model model;
  StepState state;
  state.parameters = model.parameters;
  state.optimizer = model.state;
  state.batch = {{"ids", model.ids}, {"targets", model.targets}};
  const Recording recording = record_step(state, [&] { return model.step(); }, {.stacks = false});
  auto replayer = Replayer::from_memory(recording.doc, {recording.data.begin(), recording.data.end()});
  if (!replayer) {
    std::fprintf(stderr, "%s\n", replayer.error().text().c_str());
    return 1;
  }
  const VerifyResult first = verify(*replayer);
  std::fprintf(stderr, "%zu ops, %lld outputs, %lld mismatched\n", recording.doc.ops.size(),
               static_cast<long long>(first.outputs_compared), static_cast<long long>(first.mismatched));
  if (!first.bit_exact) return 1;
  const auto step = [&] { (void)model.step(); };
  bench::report("replay.verify / step", bench::paired_ratios([&] { (void)verify(*replayer); }, step, 21), 3.0,
                bench::Better::lower);
  RunOptions wide;
  wide.precision = Precision::fp64;
  bench::report("replay.fp64_with_scan / step",
                bench::paired_ratios([&] { (void)replayer->run(wide); }, step, 11), 8.0,
                bench::Better::lower);
  return 0;
}
