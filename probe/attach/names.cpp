#include <ATen/ATen.h>

#include "probe/attach/trace.h"

namespace nanquest::attach {

std::int64_t AttachSession::name_parameter(const std::string& name, const at::Tensor& tensor) {
  std::int64_t number = -1;
  safely("naming a parameter", [&] {
    const std::size_t known = parameters_.size();
    const std::size_t index = parameters_.add(name, tensor);
    number = static_cast<std::int64_t>(index);
    weight_memory_.insert(tensor.storage().unsafeGetStorageImpl());
    if (index == known) {
      gate_.bind(index, {});
      record_.watch_parameter(parameters_.name(index), tensor);
      record_.bind(index, {});
    }
    if (trace_ && !trace_->stands())
      trace_->recorder()->announce(parameters_.name(index), tensor, SlotOrigin::parameter);
  });
  return number;
}

void AttachSession::bind(const Weights& weights) {
  release_weights();
  for (std::size_t i = 0; i < weights.tensors.size() && i < weights.numbers.size(); ++i) {
    const std::int64_t number = weights.numbers[i];
    if (number < 0 || static_cast<std::size_t>(number) >= parameters_.size()) continue;
    const auto index = static_cast<std::size_t>(number);
    // A weight that got new memory (moved, cast, loaded) keeps its name.
    (void)parameters_.put(parameters_.name(index), weights.tensors[i]);
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
  safely("naming a buffer", [&] {
    buffers_.put(name, tensor);
    if (trace_ && !trace_->stands()) trace_->recorder()->announce(name, tensor, SlotOrigin::buffer);
  });
}

void AttachSession::name_state(const std::string& name, const at::Tensor& tensor) {
  safely("naming optimizer state", [&] {
    states_.put(name, tensor);
    if (trace_ && !trace_->stands()) trace_->recorder()->announce(name, tensor, SlotOrigin::optimizer_state);
  });
}

void AttachSession::name_batch(const std::string& name, const at::Tensor& tensor) {
  if (!trace_) return;
  safely("naming the batch", [&] {
    const std::size_t index = batch_.add(name, tensor);
    if (trace_->stands())
      standing_->trace().forget_if_produced(tensor);
    else
      trace_->recorder()->announce(batch_.name(index), tensor, SlotOrigin::input);
  });
}

}  // namespace nanquest::attach
