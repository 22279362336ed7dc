// RMSprop with a centred second moment. After apache/mxnet #6235: E[g²] - E[g]² below zero by rounding, and its root.
#include <map>

#include "host.h"

namespace faultbench {
namespace {

class Centred : public Fault {
 public:
  using Fault::Fault;
  void prepare(Parameters& parameters, at::ScalarType type) override {
    drift_ = at::zeros({32}, type).set_requires_grad(true);
    parameters.emplace_back("drift", drift_);
  }
  at::Tensor extra_loss(const at::Tensor&) override {
    return (drift_ * 2.993).sum();
  }  // its gradient is always the same
  void between(Parameters&) override {
    if (!clock_.striking() || is("kept")) return;
    // Resuming from a file that keeps the moments in bf16.
    for (auto& [name, both] : moments_) {
      both.first = both.first.to(at::kBFloat16).to(both.first.scalar_type());
      both.second = both.second.to(at::kBFloat16).to(both.second.scalar_type());
    }
  }
  bool update(Parameters& parameters) override {
    for (auto& [name, p] : parameters) {
      if (!p.grad().defined()) continue;
      const at::Tensor& g = p.grad();
      auto& [square, mean] = moments_[name];
      if (!square.defined()) square = g * g, mean = g * 0.5;
      square.mul_(0.3).addcmul_(g, g, 0.7);
      mean.mul_(0.3).add_(g, 0.7);
      at::Tensor variance = square.addcmul(mean, mean, -1.0);
      if (is("clamped") || clock_.repaired) variance = variance.clamp_min(0.0);
      p.addcdiv_(g, variance.sqrt().add_(1e-2), -1e-4);
    }
    return true;
  }

 private:
  at::Tensor drift_;
  std::map<std::string, std::pair<at::Tensor, at::Tensor>> moments_;
};

const Family centred("centred", maker<Centred>());

}  // namespace
}  // namespace faultbench
