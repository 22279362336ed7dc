#include "probe/record/generators.h"

#include <ATen/ATen.h>

#include <mutex>

namespace nanquest::record {
namespace {

GeneratorState state_of(at::Generator& generator) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  if (auto* cpu = dynamic_cast<at::CPUGeneratorImpl*>(generator.unsafeGetGeneratorImpl()))
    return {cpu->engine().data(), cpu->next_float_normal_sample(), cpu->next_double_normal_sample(), {}};
  GeneratorState state{};
  state.other = generator.get_state();
  return state;
}

}  // namespace

GeneratorState state_of(c10::ArrayRef<const c10::IValue> inputs) {
  at::Generator generator;
  for (const c10::IValue& input : inputs)
    if (input.isGenerator()) generator = input.toGenerator();
  if (!generator.defined()) generator = at::detail::getDefaultCPUGenerator();
  return state_of(generator);
}

at::Tensor packed(const GeneratorState& state) {
  at::Tensor tensor = state.other;
  if (!tensor.defined()) {
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
