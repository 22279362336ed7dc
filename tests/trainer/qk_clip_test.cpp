// QK-clip compared with logits that are computed one by one from the weights.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "probe/record/record.h"
#include "tests/trainer/helpers.h"
#include "trainer/model/gpt.h"
#include "trainer/optim/clips.h"
#include "trainer/optim/sgd.h"
#include "trainer/precision/autocast.h"

namespace nanquest::trainer {
namespace {

constexpr std::int64_t kHeads = 4, kWidth = 32, kHeadWidth = kWidth / kHeads;

/// One block; longer than the rows that are processed together. Weights so large that heads differ.
GptConfig one_block(AttentionForm form = AttentionForm::written) {
  return {.depth = 1,
          .width = kWidth,
          .heads = kHeads,
          .context = 150,
          .init_std = 0.4,
          .attention = form,
          .watch_logits = true};
}

/// Weights by name, in doubles.
struct Weights {
  explicit Weights(const Model& model) {
    for (const auto& [name, p] : model.parameters()) all[name] = p.detach().to(at::kDouble).clone();
  }
  std::map<std::string, at::Tensor> all;
};

/// The largest causal logit of each head of the first block for `tokens` [batch, time]: layer norm, product
/// and logits written as sums.
std::vector<double> largest_logits(const Weights& weights, const at::Tensor& tokens) {
  const auto& w = weights.all;
  std::vector<double> largest(kHeads, 0.0);
  for (std::int64_t b = 0; b < tokens.size(0); ++b) {
    const at::Tensor x = w.at("token_embedding.weight").index_select(0, tokens[b]) +
                         w.at("position_embedding.weight").narrow(0, 0, tokens.size(1));
    const at::Tensor centred = x - x.mean(1, true);
    const at::Tensor normed =
        centred / (centred.square().mean(1, true) + 1e-5).sqrt();  // fresh norms are 1 and 0
    const at::Tensor qkv =
        normed.mm(w.at("blocks.0.attention.qkv.weight").t()) + w.at("blocks.0.attention.qkv.bias");
    const auto a = qkv.accessor<double, 2>();
    for (std::int64_t h = 0; h < kHeads; ++h)
      for (std::int64_t i = 0; i < tokens.size(1); ++i)
        for (std::int64_t j = 0; j <= i; ++j) {
          double logit = 0;
          for (std::int64_t d = 0; d < kHeadWidth; ++d)
            logit += a[i][h * kHeadWidth + d] * a[j][kWidth + h * kHeadWidth + d];
          auto& most = largest[static_cast<std::size_t>(h)];
          most = std::max(most, logit / std::sqrt(static_cast<double>(kHeadWidth)));
        }
  }
  return largest;
}

double peak(const Model& model, std::size_t head) {
  return model.attention().front().peaks[static_cast<std::int64_t>(head)].item<double>();
}

class QkClip : public testing::Test {
 protected:
  QkClip() {
    at::manual_seed(5);
    tokens = at::randint(0, 256, {3, 150}, at::kLong);
    // Biases that are not zero, so that they count.
    const at::NoGradGuard no_grad;
    for (const auto& [name, p] : model->parameters())
      if (name == "blocks.0.attention.qkv.bias") at::Tensor(p).normal_(0, 0.5);
  }
  /// SGD that changes nothing: every change is the clip's.
  std::unique_ptr<Optimizer> clip(double tau) const {
    for (const auto& [name, p] : model->parameters()) p.mutable_grad() = at::zeros_like(p);
    auto sgd = make_sgd(model->parameters(), {.momentum = 0});
    return std::move(*make_qk_clip(std::move(*sgd), model->attention(), tau));
  }
  static double number(const Optimizer& optimizer, const std::string& name) {
    for (const auto& [key, value] : optimizer.numbers())
      if (key == name) return value;
    return -1;
  }

  std::unique_ptr<Model> model = std::move(*make_gpt(one_block(), 3, at::kCPU));
  at::Tensor tokens;
};

TEST_F(QkClip, PeaksAreTheLargestCausalLogitsOfEachHeadOverAllOfABatch) {
  const std::vector<double> wanted = largest_logits(Weights(*model), tokens);
  // In parts, as with accumulation.
  (void)model->forward(tokens.narrow(0, 0, 1), true);
  (void)model->forward(tokens.narrow(0, 1, 2), true);
  for (std::size_t h = 0; h < kHeads; ++h) EXPECT_NEAR(peak(*model, h), wanted[h], 1e-4 * wanted[h]) << h;
  // Evaluation is not measured, and an undone attempt is forgotten.
  forget(model->attention());
  (void)model->forward(tokens, false);
  for (std::size_t h = 0; h < kHeads; ++h) EXPECT_EQ(peak(*model, h), 0);
  const std::vector<double> one = largest_logits(Weights(*model), tokens.narrow(0, 2, 1));
  (void)model->forward(tokens.narrow(0, 2, 1), true);
  for (std::size_t h = 0; h < kHeads; ++h) EXPECT_NEAR(peak(*model, h), one[h], 1e-4 * one[h]) << h;
}

TEST_F(QkClip, AFusedKernelAndALowFormatAreLookedAtAlike) {
  const std::vector<double> wanted = largest_logits(Weights(*model), tokens);
  auto fused = std::move(*make_gpt(one_block(AttentionForm::fused), 3, at::kCPU));
  {
    const at::NoGradGuard no_grad;
    const NamedTensors from = model->parameters(), to = fused->parameters();
    for (std::size_t i = 0; i < from.size(); ++i) at::Tensor(to[i].second).copy_(from[i].second);
  }
  const at::Tensor a = fused->forward(tokens, true), b = model->forward(tokens, true);
  EXPECT_LT((a - b).abs().max().item<double>(), 1e-3 * b.abs().max().item<double>());
  for (std::size_t h = 0; h < kHeads; ++h) EXPECT_NEAR(peak(*fused, h), wanted[h], 1e-4 * wanted[h]) << h;
  forget(model->attention());
  {
    const AutocastGuard autocast(at::kCPU, at::kBFloat16);
    EXPECT_EQ(model->forward(tokens, true).scalar_type(), at::kBFloat16);
  }
  // Queries and keys are rounded then, not the logits: 8 bits, a few of which add up.
  for (std::size_t h = 0; h < kHeads; ++h) EXPECT_NEAR(peak(*model, h), wanted[h], 0.03 * wanted[h]) << h;
}

/// Names of the ops that a recording of one pass has.
std::vector<std::string> ops_of_a_pass(bool watched, const at::Tensor& tokens) {
  GptConfig config = one_block(AttentionForm::fused);
  config.watch_logits = watched;
  const auto model = std::move(*make_gpt(config, 3, at::kCPU));
  const Recording recording = record_step({}, [&] { return model->forward(tokens, true).sum(); });
  EXPECT_EQ(recording.failure, "");
  forget(model->attention());
  std::vector<std::string> names;
  for (const OpRow& op : recording.doc.ops) names.push_back(op.name);
  return names;
}

TEST_F(QkClip, LookingAtLogitsIsNoPartOfTheStep) {
  const std::vector<std::string> without = ops_of_a_pass(false, tokens);
  EXPECT_GT(without.size(), 10u);
  EXPECT_EQ(ops_of_a_pass(true, tokens), without);
}

TEST_F(QkClip, HeadsAboveTauAreScaledToItAndAllElseStaysBitForBit) {
  const Weights before(*model);
  const std::vector<double> logits = largest_logits(before, tokens);
  std::vector<double> sorted = logits;
  std::sort(sorted.begin(), sorted.end());
  const double tau = (sorted[1] + sorted[2]) / 2;  // two heads are above it
  const auto optimizer = clip(tau);
  EXPECT_TRUE(std::isnan(number(*optimizer, "qk_clipped"))) << "not known before the first step";
  forget(model->attention());
  (void)model->forward(tokens, true);
  optimizer->step(1);
  EXPECT_EQ(number(*optimizer, "qk_clipped"), 2);
  EXPECT_NEAR(number(*optimizer, "qk_logit"), sorted[3], 1e-4 * sorted[3]);
  const Weights after(*model);
  for (const auto& [name, now] : after.all) {
    const at::Tensor& then = before.all.at(name);
    if (!name.starts_with("blocks.0.attention.qkv.")) {
      EXPECT_TRUE(at::equal(now, then)) << name;
      continue;
    }
    for (std::int64_t row = 0; row < now.size(0); ++row) {
      const bool value = row >= 2 * kWidth;
      const double logit = logits[static_cast<std::size_t>(row % kWidth / kHeadWidth)];
      const double factor = value || logit <= tau ? 1.0 : std::sqrt(tau / logit);
      if (factor == 1.0)
        EXPECT_TRUE(at::equal(now[row], then[row])) << name << row;
      else
        EXPECT_LT((now[row] - then[row] * factor).abs().max().item<double>(), 1e-5) << name << row;
    }
  }
  const std::vector<double> clipped = largest_logits(after, tokens);
  for (std::size_t h = 0; h < kHeads; ++h) EXPECT_NEAR(clipped[h], std::min(logits[h], tau), 1e-4 * tau) << h;
  // Once more, and NaN scales nothing.
  forget(model->attention());
  (void)model->forward(tokens, true);
  at::Tensor(model->attention().front().peaks)[0].fill_(INFINITY);
  clip(2 * tau)->step(1);
  EXPECT_TRUE(at::equal(Weights(*model).all.at("blocks.0.attention.qkv.weight"),
                        after.all.at("blocks.0.attention.qkv.weight")));
}

TEST_F(QkClip, IsRefusedWithoutLogitsToClipBy) {
  auto blind = std::move(*make_gpt({.depth = 1, .width = 8, .heads = 2, .context = 4}, 3, at::kCPU));
  EXPECT_TRUE(blind->attention().empty());
  auto refused =
      with_clips(std::move(*make_sgd(blind->parameters(), {})), {.qk_clip = 100}, blind->attention());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::usage);
  EXPECT_NE(refused.error().message.find("qk-clip"), std::string::npos);
}

}  // namespace
}  // namespace nanquest::trainer
