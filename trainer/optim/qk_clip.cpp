#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/optim/clips.h"
#include "trainer/optim/wrapped.h"

namespace nanquest::trainer {
namespace {

class QkClip final : public Wrapped {
 public:
  QkClip(std::unique_ptr<Optimizer> inner, std::vector<AttentionHeads> layers, double tau)
      : Wrapped(std::move(inner)), layers_(std::move(layers)), tau_(tau) {}

  void step(double lr) override {
    Wrapped::step(lr);
    const at::NoGradGuard no_grad;
    std::vector<at::Tensor> peaks;
    for (const AttentionHeads& layer : layers_) peaks.push_back(layer.peaks);
    const at::Tensor all = at::cat(peaks).cpu();  // one read for all layers
    const auto* peak = all.const_data_ptr<float>();
    largest_ = all.max().item<double>();
    clipped_ = 0;
    for (const AttentionHeads& layer : layers_) {
      scale(layer, peak);
      peak += layer.peaks.numel();
    }
  }

  std::vector<std::pair<std::string, double>> numbers() const override {
    auto all = Wrapped::numbers();
    all.emplace_back("qk_logit", largest_);
    all.emplace_back("qk_clipped", clipped_);
    return all;
  }

 private:
  void scale(const AttentionHeads& layer, const float* peak) {
    const std::int64_t heads = layer.peaks.numel();
    std::vector<double> factors;
    for (std::int64_t h = 0; h < heads; ++h) {
      const double largest = peak[h];
      factors.push_back(largest > tau_ && std::isfinite(largest) ? std::sqrt(tau_ / largest) : 1.0);
    }
    const auto over = std::count_if(factors.begin(), factors.end(), [](double f) { return f != 1.0; });
    if (over == 0) return;
    clipped_ += static_cast<double>(over);
    const at::Tensor factor = at::tensor(factors, layer.peaks.options()).unsqueeze(1);
    for (const auto* side : {&layer.queries, &layer.keys})
      for (const at::Tensor& t : *side) t.view({heads, -1}).mul_(factor);
  }

  std::vector<AttentionHeads> layers_;
  double tau_, largest_ = std::nan(""), clipped_ = std::nan("");
};

}  // namespace

Result<std::unique_ptr<Optimizer>> make_qk_clip(std::unique_ptr<Optimizer> inner,
                                                std::vector<AttentionHeads> layers, double tau) {
  if (layers.empty())
    return Error{ErrorCode::usage, "qk-clip: this model shows no attention logits to clip by",
                 "leave --qk-clip out"};
  return std::unique_ptr<Optimizer>(std::make_unique<QkClip>(std::move(inner), std::move(layers), tau));
}

}  // namespace nanquest::trainer
