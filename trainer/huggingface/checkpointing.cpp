#include "trainer/huggingface/checkpointing.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <memory>
#include <optional>

#include "probe/nanquest.h"
#include "trainer/precision/autocast.h"

namespace nanquest::trainer {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Does not keep casts of weights over the scope: those made in forward have no history and would be reused.
class NoCastCache {
 public:
  NoCastCache() : before_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~NoCastCache() { at::autocast::set_autocast_cache_enabled(before_); }
  NoCastCache(const NoCastCache&) = delete;
  NoCastCache& operator=(const NoCastCache&) = delete;

 private:
  bool before_;
};

at::Generator generator_of(at::Device device) {
  return device.is_cpu() ? at::detail::getDefaultCPUGenerator()
                         : at::globalContext().defaultGenerator(device);
}

at::Tensor state_of(at::Generator generator) {
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_state(at::Generator generator, const at::Tensor& state) {
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

/// Everything that makes the second computation equal to the first.
struct Kept : torch::CustomClassHolder {
  std::function<at::Tensor(const at::Tensor&)> layer;
  at::Device device{at::kCPU};
  at::Tensor random;  ///< state of the device's generator when the layer began
  bool autocast = false;
  at::ScalarType dtype = at::kFloat;
  std::string module;
};

struct Checkpoint : torch::autograd::Function<Checkpoint> {
  static at::Tensor forward(AutogradContext* context, const c10::intrusive_ptr<Kept>& kept,
                            const at::Tensor& x, at::TensorList weights) {
    variable_list saved{x};
    saved.insert(saved.end(), weights.begin(), weights.end());
    context->save_for_backward(saved);
    context->saved_data["kept"] = c10::IValue::make_capsule(kept);
    const NoCastCache no_cache;
    return kept->layer(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data["kept"].toCapsule();
    const Kept& kept = static_cast<const Kept&>(*capsule);
    const variable_list saved = context->get_saved_variables();
    const at::Generator generator = generator_of(kept.device);
    const at::Tensor random_now = state_of(generator);
    set_state(generator, kept.random);
    at::Tensor x = saved.front().detach().set_requires_grad(saved.front().requires_grad()), y;
    {
      const at::AutoGradMode with_history(true);
      const AutocastGuard autocast(kept.device.type(), kept.autocast ? kept.dtype : at::kFloat);
      const NoCastCache no_cache;
      const ModuleScope again(kept.module, "Recompute");
      y = kept.layer(x);
    }
    set_state(generator, random_now);
    variable_list inputs;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < saved.size(); ++i) {
      const at::Tensor& input = i == 0 ? x : saved[i];
      if (!input.requires_grad()) continue;
      inputs.push_back(input);
      places.push_back(i);
    }
    const variable_list found = torch::autograd::grad({y}, inputs, gradients, std::nullopt, false, true);
    variable_list all(saved.size() + 1);  // the first argument is not a tensor
    for (std::size_t i = 0; i < places.size(); ++i) all[places[i] + 1] = found[i];
    return all;
  }
};

}  // namespace

at::Tensor checkpointed(const std::function<at::Tensor(const at::Tensor&)>& layer, const at::Tensor& x,
                        const std::vector<at::Tensor>& weights) {
  if (!at::GradMode::is_enabled()) return layer(x);
  auto kept = c10::make_intrusive<Kept>();
  kept->layer = layer;
  kept->device = x.device();
  kept->random = state_of(generator_of(x.device()));
  kept->autocast = at::autocast::is_autocast_enabled(x.device().type());
  kept->dtype = at::autocast::get_autocast_dtype(x.device().type());
  kept->module = std::string(current_module_path());
  return Checkpoint::apply(kept, x, at::TensorList(weights));
}

}  // namespace nanquest::trainer
