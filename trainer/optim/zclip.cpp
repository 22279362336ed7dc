#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "trainer/optim/clips.h"
#include "trainer/optim/wrapped.h"

namespace nanquest::trainer {
namespace {

/// Indices into the state tensor.
enum Place : std::uint8_t { seen, mean, variance, places };

class ZClip final : public Wrapped {
 public:
  ZClip(std::unique_ptr<Optimizer> inner, const ZClipOptions& options)
      : Wrapped(std::move(inner)), options_(options), memory_(at::zeros({places}, at::kDouble)) {}

  void step(double lr) override {
    const double norm = gradient_norm();
    const double let_through = limit(norm);
    if (let_through < norm) scale_gradients(let_through / norm);
    learn(let_through);
    Wrapped::step(lr);
  }

  NamedTensors state() const override {
    NamedTensors all = Wrapped::state();
    all.emplace_back("zclip", memory_);
    return all;
  }

 private:
  double* memory() { return memory_.mutable_data_ptr<double>(); }

  double gradient_norm() const {
    const at::NoGradGuard no_grad;
    double squares = 0;
    for (const auto& [name, p] : parameters())
      if (p.grad().defined()) squares += p.grad().to(at::kDouble).square().sum().item<double>();
    return std::sqrt(squares);
  }

  double limit(double norm) {
    const double* m = memory();
    if (m[seen] < static_cast<double>(options_.warmup)) return norm;
    const double deviation = std::sqrt(m[variance]);
    const double score = (norm - m[mean]) / deviation;
    // Equal norms have no deviation to compare with.
    return deviation > 0 && score > options_.z ? m[mean] + options_.z * options_.z / score * deviation : norm;
  }

  void learn(double norm) {
    double* m = memory();
    const double before = m[seen]++, off = norm - m[mean];
    if (before < static_cast<double>(options_.warmup)) {
      // Mean and variance of all norms so far (Welford).
      m[mean] += off / m[seen];
      m[variance] += (off * (norm - m[mean]) - m[variance]) / m[seen];
      return;
    }
    m[mean] = options_.alpha * m[mean] + (1 - options_.alpha) * norm;
    m[variance] = options_.alpha * m[variance] + (1 - options_.alpha) * (norm - m[mean]) * (norm - m[mean]);
  }

  ZClipOptions options_;
  at::Tensor memory_;
};

}  // namespace

std::unique_ptr<Optimizer> make_zclip(std::unique_ptr<Optimizer> inner, const ZClipOptions& options) {
  return std::make_unique<ZClip>(std::move(inner), options);
}

}  // namespace nanquest::trainer
