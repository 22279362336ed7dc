/// An optimizer that wraps another one for the same weights.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/optim/optimizer.h"

namespace nanquest::trainer {

/// Only forwards: the base of wrappers that change gradients before the update or weights after it.
class Wrapped : public Optimizer {
 public:
  explicit Wrapped(std::unique_ptr<Optimizer> inner)
      : Optimizer(inner->parameters()), inner_(std::move(inner)) {}
  void step(double lr) override { inner_->step(lr); }
  NamedTensors state() const override { return inner_->state(); }
  std::vector<std::pair<std::string, double>> numbers() const override { return inner_->numbers(); }

 private:
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace nanquest::trainer
