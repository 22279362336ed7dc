#include "probe/record/generators.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <mutex>

namespace nanquest::record {
namespace {

GeneratorState state_of(at::Generator& generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  if (auto* cpu = dynamic_cast<at::CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl()))
    return {
        true, cpu->engine().data(), cpu->next_float_normal_sample(), cpu->next_double_normal_sample(), {}};
  GeneratorState state{};
  state.on_cpu = false;
  state.other = generator.get_state();
  return state;
}

/// The default generator of the device that an op draws on.
at::Device drawing_device(c10::ArrayRef<const c10::IValue> inputs) {
  std::optional<at::Device> first;
  for (const c10::IValue& input : inputs) {
    if (input.isDevice()) return input.toDevice();
    if (!first && input.isTensor() && input.toTensor().defined()) first = input.toTensor().device();
  }
  return first.value_or(at::kCPU);
}

}  // namespace

GeneratorState state_of(c10::ArrayRef<const c10::IValue> inputs) {
  at::Generator generator;
  for (const c10::IValue& input : inputs)
    if (input.isGenerator()) generator = input.toGenerator();
  const at::Device device = generator.defined() ? generator.device() : drawing_device(inputs);
  if (device.is_cpu()) {
    if (!generator.defined()) generator = at::detail::getDefaultCPUGenerator();
    return state_of(generator);
  }
  try {
    if (!generator.defined())
      generator = at::globalContext().defaultGenerator(
          device.has_index() ? device : c10::impl::VirtualGuardImpl(device.type()).getDevice());
    return state_of(generator);
  } catch (const c10::Error&) {
    GeneratorState unknown{};
    unknown.on_cpu = false;
    return unknown;
  }
}

at::Tensor packed(const GeneratorState& state) {
  at::Tensor tensor = state.other;
  if (state.on_cpu) {
    auto generator = c10::make_intrusive<at::CPUGeneratorImpl>();
    at::mt19937 engine;
    engine.set_data(state.engine);
    generator->set_engine(engine);
    generator->set_next_float_normal_sample(state.next_float);
    generator->set_next_double_normal_sample(state.next_double);
    tensor = at::Generator(generator).get_state();
  }
  return tensor;
}

}  // namespace nanquest::record
