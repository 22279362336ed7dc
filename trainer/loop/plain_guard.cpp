#include "trainer/loop/plain_guard.h"

#include <ATen/ATen.h>

#include <cmath>

#include "trainer/precision/device.h"

namespace nanquest::trainer {

StepReport plain_step(const NamedTensors& parameters, const NamedTensors& buffers, at::Device device,
                      double loss_scale, double min_loss_scale, const std::function<at::Tensor()>& compute) {
  const auto generators = rng_states(device);
  NamedTensors before;
  for (const auto& [name, b] : buffers) before.emplace_back(name, b.clone());
  for (const auto& [name, p] : parameters) p.mutable_grad().reset();

  StepReport report;
  report.loss = compute().to(at::kDouble).item<double>();
  const at::NoGradGuard no_grad;
  double squares = 0;
  for (const auto& [name, p] : parameters) {
    if (!p.grad().defined()) continue;
    p.grad().mul_(1.0 / loss_scale);
    const double norm = at::linalg_vector_norm(p.grad(), 2, {}, false, at::kDouble).item<double>();
    if (!std::isfinite(norm))
      report.bad_gradients += at::isfinite(p.grad()).logical_not().sum().item<std::int64_t>();
    squares += norm * norm;
  }
  report.grad_norm = std::sqrt(squares);
  if (std::isfinite(report.loss) && std::isfinite(report.grad_norm)) return report;

  const bool scale_only = std::isfinite(report.loss) && loss_scale > min_loss_scale;
  report.gate = scale_only ? Gate::scale_overflow : Gate::non_finite;
  report.summary = std::isfinite(report.loss)
                       ? std::to_string(report.bad_gradients) + " gradient elements are not finite"
                       : "the loss is not finite";
  set_rng_states(device, generators);
  for (std::size_t i = 0; i < buffers.size(); ++i) at::Tensor(buffers[i].second).copy_(before[i].second);
  for (const auto& [name, p] : parameters) p.mutable_grad().reset();
  report.state_corrupt = report.gate == Gate::non_finite && !(all_finite(parameters) && all_finite(buffers));
  return report;
}

bool all_finite(const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, t] : tensors)
    if (t.is_floating_point() && !at::isfinite(t).all().item<bool>()) return false;
  return true;
}

}  // namespace nanquest::trainer
