#include <ATen/ATen.h>

#include "probe/attach/trace.h"

namespace nanquest::attach {

void AttachSession::name_parameter(const std::string& name, const at::Tensor& tensor) {
  safely("naming a parameter", [&] {
    const std::size_t before = gate_.size();
    gate_.watch(tensor);
    if (gate_.size() == before) return;
    const std::string used = parameters_.add(name, tensor);
    record_.watch_parameter(used, tensor);
    if (trace_) trace_->recorder.announce(used, tensor, SlotOrigin::parameter);
  });
}

void AttachSession::name_buffer(const std::string& name, const at::Tensor& tensor) {
  safely("naming a buffer", [&] {
    buffers_.put(name, tensor);
    if (trace_) trace_->recorder.announce(name, tensor, SlotOrigin::buffer);
  });
}

void AttachSession::name_state(const std::string& name, const at::Tensor& tensor) {
  safely("naming optimizer state", [&] {
    states_.put(name, tensor);
    if (trace_) trace_->recorder.announce(name, tensor, SlotOrigin::optimizer_state);
  });
}

void AttachSession::name_batch(const std::string& name, const at::Tensor& tensor) {
  if (!trace_) return;
  safely("naming the batch", [&] {
    const std::string used = batch_.add(name, tensor.detach());
    trace_->recorder.announce(used, tensor, SlotOrigin::input);
  });
}

}  // namespace nanquest::attach
