#include "probe/attach/program_tensors.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace nanquest::attach {

std::int64_t ProgramTensors::add_parameter(const std::string& name, const at::Tensor& tensor) {
  const std::size_t known = names_.parameters.size(), index = names_.parameters.add(name, tensor);
  remember(tensor);
  times_.resize(names_.parameters.size());
  ++times_[index];
  if (index == known) {
    gate_.bind(index, {});
    history_.watch_parameter(names_.parameters.name(index), tensor);
    history_.bind(index, {});
  }
  return static_cast<std::int64_t>(index);
}

void ProgramTensors::put(const std::string& kind, const std::string& name, const at::Tensor& tensor) {
  if (kind == "parameter") remember(tensor);
  NamedList* const list = kind == "parameter" ? &names_.parameters
                          : kind == "buffer"  ? &names_.buffers
                          : kind == "state"   ? &names_.states
                          : kind == "scale"   ? &names_.scales
                          : kind == "kept"    ? &names_.kept
                                              : nullptr;
  if (list) (void)list->put(name, tensor);
}

void ProgramTensors::bind(const Weights& weights) {
  release();
  times_.resize(names_.parameters.size());
  for (std::size_t i = 0; i < weights.tensors.size() && i < weights.numbers.size(); ++i) {
    const std::int64_t number = weights.numbers[i];
    if (number < 0 || static_cast<std::size_t>(number) >= names_.parameters.size()) continue;
    const auto index = static_cast<std::size_t>(number);
    // A weight that moved to new memory (moved, cast, loaded) keeps its name.
    if (names_.parameters.renew(index, weights.tensors[i])) remember(weights.tensors[i]);
    gate_.bind(index, weights.tensors[i]);
    history_.bind(index, weights.tensors[i]);
    bound_.push_back(index);
  }
}

void ProgramTensors::release() {
  for (const std::size_t index : bound_) {
    gate_.bind(index, {});
    history_.bind(index, {});
  }
  bound_.clear();
}

void ProgramTensors::renew() {
  for (const std::size_t index : bound_) ++times_[index];
}

std::uint64_t ProgramTensors::trained() const {
  std::uint64_t sum = 0xcbf29ce484222325;  // FNV-1a, by words
  for (const std::size_t index : bound_)
    for (const std::uint64_t word : {static_cast<std::uint64_t>(index), times_[index]})
      sum = (sum ^ word) * 0x100000001b3;
  return sum;
}

std::uint64_t ProgramTensors::bytes_of_update(at::Device& device) {
  std::uint64_t weights = 0;
  for (const std::size_t index : bound_) {
    const at::Tensor& weight = gate_.parameters()[index];
    if (!weight.is_cpu()) device = weight.device();
    weights += weight.nbytes();
  }
  if (state_bytes_.first != names_.states.size()) {
    state_bytes_ = {names_.states.size(), 0};
    for (const auto& [name, state] : names_.states.living()) state_bytes_.second += state.nbytes();
  }
  // Two moments per weight, until the real ones are known.
  return weights + (state_bytes_.first ? state_bytes_.second : 2 * weights);
}

const std::vector<at::Device>& ProgramTensors::devices() {
  auto& [weights, devices] = devices_;
  if (weights != names_.parameters.size()) {
    devices_ = {names_.parameters.size(), {at::kCPU}};
    for (const auto& [name, weight] : names_.parameters.living())
      if (std::find(devices.begin(), devices.end(), weight.device()) == devices.end())
        devices.push_back(weight.device());
  }
  return devices;
}

std::string ProgramTensors::bad_in_memory_of(const std::string& name) const {
  for (const NamedList* list : {&names_.parameters, &names_.buffers, &names_.states, &names_.kept})
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (list->name(i) != name) continue;
      if (!all_finite(list->tensor(i).lock())) return name;
      for (std::size_t j = 0; j < list->size(); ++j)
        if (list->tensor(j).lies_in(list->tensor(i).address()) && !all_finite(list->tensor(j).lock()))
          return list->name(j);
      return name;
    }
  return name;
}

}  // namespace nanquest::attach
