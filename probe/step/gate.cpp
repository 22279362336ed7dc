#include "probe/step/gate.h"

#include <algorithm>
#include <cmath>

namespace nanquest {

bool GateResult::finite() const {
  return non_finite == 0 && std::isfinite(norm);
}

std::size_t GradientGate::watch(const at::Tensor& parameter) {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].is_same(parameter)) return i;
  parameters_.push_back(parameter);
  return parameters_.size() - 1;
}

void GradientGate::bind(std::size_t index, const at::Tensor& parameter) {
  if (index == parameters_.size()) parameters_.emplace_back();
  parameters_[index] = parameter;
}

void GradientGate::clear_gradients() {
  for (at::Tensor& p : parameters_)
    if (p.defined() && p.grad().defined()) p.mutable_grad().reset();
}

GateResult GradientGate::run(double loss_scale, const at::Tensor& loss) {
  pass_.begin();
  for (const at::Tensor& p : parameters_) pass_.add(p.defined() ? p.grad() : p);
  const bool has_loss = loss.defined() && loss.numel() > 0;
  if (has_loss) pass_.read(loss);
  pass_.run(loss_scale == 1 ? 1 : 1 / loss_scale);
  GateResult all;
  if (has_loss) all.loss = pass_.value(0);
  double sum = 0;
  for (std::size_t i = 0; i < pass_.size(); ++i) {
    const LoopStats& s = pass_.stats(i);
    sum += s.sum_squares;
    all.amax = std::max(all.amax, s.amax);
    all.non_finite += s.non_finite;
  }
  all.norm = std::sqrt(sum);
  return all;
}

}  // namespace nanquest
