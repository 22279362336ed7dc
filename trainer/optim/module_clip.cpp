#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <map>
#include <vector>

#include "trainer/optim/clips.h"
#include "trainer/optim/wrapped.h"

namespace nanquest::trainer {
namespace {

class ModuleClip final : public Wrapped {
 public:
  ModuleClip(std::unique_ptr<Optimizer> inner, double largest)
      : Wrapped(std::move(inner)), largest_(largest) {}

  void step(double lr) override {
    const at::NoGradGuard no_grad;
    std::map<std::string, std::vector<at::Tensor>> modules;
    for (const auto& [name, p] : parameters())
      if (p.grad().defined()) modules[name.substr(0, name.rfind('.'))].push_back(p.grad());
    for (auto& [name, gradients] : modules) {
      double squares = 0;
      for (const at::Tensor& g : gradients) squares += g.to(at::kDouble).square().sum().item<double>();
      const double norm = std::sqrt(squares);
      if (norm > largest_) at::_foreach_mul_(gradients, largest_ / norm);
    }
    Wrapped::step(lr);
  }

 private:
  double largest_;
};

}  // namespace

std::unique_ptr<Optimizer> make_module_clip(std::unique_ptr<Optimizer> inner, double largest) {
  return std::make_unique<ModuleClip>(std::move(inner), largest);
}

}  // namespace nanquest::trainer
