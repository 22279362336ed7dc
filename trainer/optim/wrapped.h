/// An optimizer around another one that moves the same weights.
#pragma once

#include <memory>
#include <utility>

#include "trainer/optim/optimizer.h"

namespace nanquest::trainer {

/// Does nothing of its own: the base of what changes gradients before the update.
class Wrapped : public Optimizer {
 public:
  explicit Wrapped(std::unique_ptr<Optimizer> inner)
      : Optimizer(inner->parameters()), inner_(std::move(inner)) {}
  void step(double lr) override { inner_->step(lr); }
  NamedTensors state() const override { return inner_->state(); }

 private:
  std::unique_ptr<Optimizer> inner_;
};

}  // namespace nanquest::trainer
