#include "trainer/loop/injector.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <limits>

namespace nanquest::trainer {

bool Injector::active(Injection::Kind kind, std::int64_t batch, at::ScalarType format) const {
  return std::any_of(injections_.begin(), injections_.end(), [&](const Injection& i) {
    return i.kind == kind && batch >= i.at && batch < i.at + i.count &&
           !(i.only_low_precision && format == at::kFloat) && (i.rank < 0 || i.rank == rank_);
  });
}

at::Tensor Injector::into_loss(const at::Tensor& loss, std::int64_t batch, at::ScalarType format) const {
  if (!active(Injection::Kind::nan_loss, batch, format)) return loss;
  return loss * std::numeric_limits<double>::quiet_NaN();
}

void Injector::into_gradients(const NamedTensors& parameters, std::int64_t batch,
                              at::ScalarType format) const {
  if (!active(Injection::Kind::inf_gradient, batch, format)) return;
  const at::NoGradGuard no_grad;
  for (const auto& [name, p] : parameters) {
    if (!p.grad().defined()) continue;
    p.grad().view({-1}).select(0, 0).fill_(std::numeric_limits<double>::infinity());
    return;
  }
}

}  // namespace nanquest::trainer
