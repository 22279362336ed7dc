#include "trainer/task/named_tensors.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

namespace nanquest::trainer {

bool all_finite(const NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, t] : tensors)
    if (t.is_floating_point() && !at::isfinite(t).all().item<bool>()) return false;
  return true;
}

}  // namespace nanquest::trainer
