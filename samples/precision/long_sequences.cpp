// A run in fp16 that is fine for 220 batches and overflows on the one with a long document.
//
// A classifier sums the features of all tokens of a document (a product with the mask that hides the padding)
// and normalises the sum. No weight, rate or input is wrong: a sum grows with the length, documents have 32
// to 256 tokens, and one has 24,000. Its sum exceeds 65504, the end of fp16. In the norm, infinity minus
// infinity is NaN, and so is every weight after that step. (A loss scaler would leave the batch out and halve
// the scale at each such document: finite, but never learned from.) The guard names the product, the ladder
// computes that batch once more in fp32, and the run continues in fp16.
//
// usage: long_sequences RUN_DIR      prints "what … number", one a line, and the op; the run's snapshot is in
// RUN_DIR
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "probe/nanquest.h"
#include "trainer/loop/ladder.h"
#include "trainer/optim/adamw.h"
#include "trainer/precision/autocast.h"

namespace {

using namespace nanquest::trainer;

constexpr std::int64_t kBatches = 300, kDocuments = 8, kTokens = 64, kWidth = 32;
constexpr std::int64_t kLongAt = 220, kLong = 24000;
constexpr double kRate = 2e-3, kLargestHalf = 65504;

void tell(const char* what, double number) {
  std::printf("%-64s %.6g\n", what, number);
}

/// Documents [kDocuments, longest], their padding (0), and whether small tokens outnumber large ones.
struct Documents {
  at::Tensor tokens, mask, labels;
  std::int64_t longest = 0;

  explicit Documents(std::int64_t batch) {
    at::manual_seed(static_cast<std::uint64_t>(batch) + 100);
    at::Tensor lengths = at::randint(32, 257, {kDocuments}, at::kLong);
    if (batch == kLongAt) lengths[3].fill_(kLong);
    longest = lengths.max().item<std::int64_t>();
    labels = at::randint(2, {kDocuments}, at::kLong);
    // Three in four tokens are of the label's kind.
    const at::Tensor kind = at::rand({kDocuments, longest}).lt(0.75).to(at::kLong).eq(labels.unsqueeze(1));
    tokens = at::randint(kTokens / 2, {kDocuments, longest}, at::kLong) + kind.to(at::kLong) * (kTokens / 2);
    mask = at::arange(longest).lt(lengths.unsqueeze(1)).to(at::kFloat);
  }
};

class Classifier {
 public:
  Classifier() {
    at::manual_seed(2);
    const auto weight = [&](const char* name, const at::Tensor& values) {
      weights.emplace_back(name, values.clone().set_requires_grad(true));
    };
    weight("embedding.weight", at::randn({kTokens, kWidth}));
    weight("features.weight", at::randn({kWidth, kWidth}) * 1.5);
    weight("head.weight", at::randn({2, kWidth}) * 0.1);
  }

  at::Tensor loss(const Documents& documents, at::ScalarType format) {
    at::Tensor sum;
    {
      const nanquest::ModuleScope here("pool", "SumOverTokens");
      const AutocastGuard autocast(at::kCPU, format);
      const at::Tensor features =
          at::relu(at::linear(at::embedding(weights[0].second, documents.tokens), weights[1].second));
      sum = at::matmul(documents.mask.unsqueeze(1), features).squeeze(1);
    }
    largest_sum = sum.detach().abs().max().item<double>();
    const nanquest::ModuleScope here("head", "Classifier");
    return at::cross_entropy_loss(at::linear(at::layer_norm(sum.to(at::kFloat), {kWidth}), weights[2].second),
                                  documents.labels);
  }
  double finite_share() const {
    double finite = 0, all = 0;
    for (const auto& [name, p] : weights) {
      finite += at::isfinite(p).sum().item<double>();
      all += static_cast<double>(p.numel());
    }
    return finite / all;
  }

  NamedTensors weights;
  double largest_sum = 0;  ///< of the last `loss`
};

/// The usual loop, without protection.
void alone() {
  Classifier model;
  auto adamw = make_adamw(model.weights, {}).value();
  std::int64_t bad = -1, longest = 0;
  double loss = 0, largest = 0, per_token = 0;
  for (std::int64_t batch = 0; batch < kBatches; ++batch) {
    const Documents documents(batch);
    adamw->clear_gradients();
    const at::Tensor now = model.loss(documents, at::kHalf);
    now.backward();
    adamw->step(kRate);
    loss = now.item<double>();
    if (bad < 0 && !std::isfinite(loss)) bad = batch;
    if (bad >= 0) continue;
    longest = std::max(longest, documents.longest);
    largest = std::max(largest, model.largest_sum);
    per_token = std::max(per_token, model.largest_sum / static_cast<double>(documents.longest));
  }
  tell("alone: longest document before it", static_cast<double>(longest));
  tell("alone: largest sum before it", largest);
  tell("alone: tokens that fp16 has room for, at that rate", kLargestHalf / per_token);
  tell("alone: first batch whose loss is no number", static_cast<double>(bad));
  tell("alone: loss at the end", loss);
  tell("alone: share of weights that are numbers", model.finite_share());
}

/// The same with the guard and the ladder around it.
int guarded(const std::string& run_dir) {
  Classifier model;
  auto probe = nanquest::Probe::create({.run_dir = run_dir});
  if (!probe) {
    std::fprintf(stderr, "long_sequences: %s\n", probe.error().text().c_str());
    return nanquest::exit_code(probe.error().code);
  }
  for (const auto& [name, p] : model.weights) (*probe)->watch_parameter(name, p);
  auto adamw = make_adamw(model.weights, {}).value();
  (*probe)->watch_optimizer([&] { return adamw->state(); });
  Counters counters;
  std::string what;
  Ladder ladder({.policy = Policy::retry_fp32}, {.initial = 256}, at::kHalf, Learned(*adamw, {}, at::kCPU),
                counters, {.incident = [&](const nanquest::StepReport& report) { what = report.summary; }});
  double loss = 0, sum_in_fp32 = 0;
  Ladder::Answer now;
  for (std::int64_t batch = 0; batch < kBatches && ladder.keep().next != Ladder::Next::stop;
       batch += now.next != Ladder::Next::again) {
    const Documents documents(batch);
    const double scale = ladder.loss_scale();
    const nanquest::StepReport report =
        (*probe)->step({.step = counters.optimizer_step, .lr = kRate, .loss_scale = scale}, [&] {
          const at::Tensor loss_now = model.loss(documents, ladder.format());
          (loss_now * scale).backward();
          return loss_now;
        });
    now = ladder.after(report);
    if (now.next != Ladder::Next::update) continue;
    if (batch == kLongAt) sum_in_fp32 = model.largest_sum;
    now = ladder.updated((*probe)->update(counters.optimizer_step, [&] { adamw->step(kRate); }));
    loss = report.loss;
  }
  tell("guarded: incidents", static_cast<double>(counters.incidents));
  tell("guarded: updates", static_cast<double>(counters.optimizer_step));
  tell("guarded: batches left out", static_cast<double>(counters.skipped));
  tell("guarded: the sum that was too large", sum_in_fp32);
  tell("guarded: loss at the end", loss);
  tell("guarded: share of weights that are numbers", model.finite_share());
  std::printf("%s\n", what.c_str());
  return (*probe)->finish("finished") ? 0 : 70;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s RUN_DIR\n", argv[0]);
    return 2;
  }
  at::set_num_threads(1);
  alone();
  return guarded(argv[1]);
}
