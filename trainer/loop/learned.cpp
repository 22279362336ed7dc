#include "trainer/loop/learned.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <utility>

#include "trainer/precision/device.h"

namespace nanquest::trainer {

Learned::Learned(Optimizer& optimizer, std::function<NamedTensors()> buffers, at::Device device)
    : optimizer_(&optimizer),
      buffers_(buffers ? std::move(buffers) : [] { return NamedTensors(); }),
      device_(device) {}

NamedTensors Learned::tensors() const {
  NamedTensors all;
  for (const auto& [name, p] : optimizer_->parameters()) all.emplace_back("model." + name, p.detach());
  for (const auto& [name, b] : buffers_()) all.emplace_back("buffer." + name, b.detach());
  for (const auto& moment : optimizer_->state()) all.push_back(moment);
  return all;
}

NamedTensors Learned::with_generators() const {
  NamedTensors all = tensors();
  for (const auto& [name, r] : rng_states(device_)) all.emplace_back("rng." + name, r);
  return all;
}

Status Learned::put_back(const NamedTensors& from, bool other_device) {
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> stored(from.begin(), from.end());
  const auto find = [&](const std::string& name, const at::Tensor& now) {
    const auto found = stored.find(name);
    const bool same = found != stored.end() && found->second.sizes() == now.sizes() &&
                      found->second.scalar_type() == now.scalar_type();
    return same ? found->second : at::Tensor();
  };
  const NamedTensors targets = tensors();
  for (const auto& [name, target] : targets)
    if (!find(name, target).defined())
      return Error{ErrorCode::bad_file, "the checkpoint's " + name + " is missing or has another shape",
                   "resume with the settings the run was started with"};
  NamedTensors generators = rng_states(device_);
  for (auto& [name, generator] : generators) {
    const at::Tensor found = find("rng." + name, generator);
    // A device that the run did not use before has no stored generator state: its generator stays as it is.
    if (!found.defined() && other_device && !stored.contains("rng." + name)) continue;
    generator = found;
    if (!generator.defined())
      return Error{ErrorCode::bad_file, "the checkpoint's rng." + name + " is missing or of another kind",
                   "start anew"};
  }
  for (const auto& [name, target] : targets) target.copy_(find(name, target));
  set_rng_states(device_, generators);
  optimizer_->clear_gradients();
  return {};
}

bool Learned::finite(bool moments) const {
  return all_finite(optimizer_->parameters()) && all_finite(buffers_()) &&
         (!moments || all_finite(optimizer_->state()));
}

}  // namespace nanquest::trainer
