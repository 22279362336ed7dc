#include "probe/step/gate.h"

#include <algorithm>
#include <cmath>
#include <utility>

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

std::vector<std::ptrdiff_t> GradientGate::begin(TensorPass& pass, const std::vector<at::Tensor>& numbers,
                                                bool loss_in_word) const {
  pass.begin();
  for (const at::Tensor& p : parameters_) pass.add(p.defined() ? p.grad() : p);
  std::vector<std::ptrdiff_t> places;
  places.reserve(numbers.size());
  for (const at::Tensor& number : numbers) {
    const bool in_word = loss_in_word || !places.empty();
    places.push_back(number.defined() && number.numel() > 0
                         ? static_cast<std::ptrdiff_t>(pass.read(number, in_word))
                         : -1);
  }
  return places;
}

GateResult GradientGate::result() const {
  GateResult all;
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

GateResult GradientGate::run(double loss_scale, const at::Tensor& loss) {
  const bool has_loss = begin(pass_, {loss}, true).front() >= 0;
  pass_.run(loss_scale == 1 ? 1 : 1 / loss_scale);
  GateResult all = result();
  if (has_loss) all.loss = pass_.value(0);
  return all;
}

void GradientGate::start(GateLook& look, double loss_scale, const std::vector<at::Tensor>& numbers,
                         bool loss_in_word) {
  look.places_ = begin(look.pass_, numbers, loss_in_word);
  look.pass_.start(loss_scale == 1 ? 1 : 1 / loss_scale);
}

GateResult GradientGate::finish(GateLook& look) {
  look.pass_.finish();
  std::swap(pass_, look.pass_);
  look.numbers_.clear();
  for (const std::ptrdiff_t place : look.places_)
    look.numbers_.push_back(place < 0 ? std::nullopt
                                      : std::optional(pass_.value(static_cast<std::size_t>(place))));
  GateResult all = result();
  all.loss = look.number(0).value_or(0);
  return all;
}

}  // namespace nanquest
