#include <ATen/ATen.h>

#include "probe/attach/session.h"

namespace nanquest::attach {

std::int64_t AttachSession::name_parameter(const std::string& name, const at::Tensor& tensor) {
  std::int64_t number = -1;
  safely("naming a parameter", [&] {
    const std::size_t known = names_.parameters.size();
    const std::size_t index = names_.parameters.add(name, tensor);
    number = static_cast<std::int64_t>(index);
    weight_memory_.insert(tensor.storage().unsafeGetStorageImpl());
    if (index == known) {
      gate_.bind(index, {});
      record_.watch_parameter(names_.parameters.name(index), tensor);
      record_.bind(index, {});
    }
  });
  return number;
}

void AttachSession::name_parameter_again(const std::string& name, const at::Tensor& tensor) {
  safely("naming a parameter", [&] {
    (void)names_.parameters.put(name, tensor);
    weight_memory_.insert(tensor.storage().unsafeGetStorageImpl());
  });
}

void AttachSession::bind(const Weights& weights) {
  release_weights();
  for (std::size_t i = 0; i < weights.tensors.size() && i < weights.numbers.size(); ++i) {
    const std::int64_t number = weights.numbers[i];
    if (number < 0 || static_cast<std::size_t>(number) >= names_.parameters.size()) continue;
    const auto index = static_cast<std::size_t>(number);
    // A weight that got new memory (moved, cast, loaded) keeps its name.
    (void)names_.parameters.put(names_.parameters.name(index), weights.tensors[i]);
    gate_.bind(index, weights.tensors[i]);
    record_.bind(index, weights.tensors[i]);
    bound_.push_back(index);
    weight_memory_.insert(weights.tensors[i].storage().unsafeGetStorageImpl());
  }
}

void AttachSession::release_weights() {
  for (const std::size_t index : bound_) {
    gate_.bind(index, {});
    record_.bind(index, {});
  }
  bound_.clear();
}

void AttachSession::name_buffer(const std::string& name, const at::Tensor& tensor) {
  safely("naming a buffer", [&] { names_.buffers.put(name, tensor); });
}

void AttachSession::name_state(const std::string& name, const at::Tensor& tensor) {
  safely("naming optimizer state", [&] { names_.states.put(name, tensor); });
}

void AttachSession::name_scale(const std::string& name, const at::Tensor& tensor) {
  safely("naming a loss scale", [&] { names_.scales.put(name, tensor); });
}

void AttachSession::name_batch(const std::string& name, const at::Tensor& tensor) {
  if (!trace_) return;
  safely("naming the batch", [&] {
    (void)batch_.add(name, tensor);
    // The program worked on it before it was known by name: from here on it is what the step was given.
    rounds_->recorder().forget_if_produced(tensor);
  });
}

}  // namespace nanquest::attach
