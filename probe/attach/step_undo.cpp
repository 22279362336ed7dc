#include "probe/attach/step_undo.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <cstring>
#include <mutex>
#include <utility>

namespace nanquest::attach {
namespace {

at::Tensor state_of(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace

void StepUndo::remember(const std::vector<at::Tensor>& buffers, std::vector<at::Device> devices) {
  forget();
  devices_ = std::move(devices);
  for (const at::Tensor& buffer : buffers) buffers_.watch_buffer(buffer);
  for (const at::Device device : devices_) random_.watch_device(device);
  buffers_.save();
  random_.save();
  look();
  remembers_ = true;
}

void StepUndo::look() {
  seen_.clear();
  for (const at::Device device : devices_) seen_.push_back(state_of(device));
}

bool StepUndo::drawn_since() const {
  for (std::size_t i = 0; i < devices_.size(); ++i)
    if (!same(seen_[i], state_of(devices_[i]))) return true;
  return false;
}

void StepUndo::pass(bool begins) {
  if (begins && depth_++ > 0) return;
  if (!begins && (depth_ == 0 || --depth_ > 0)) return;
  if (!remembers_ || drawn_outside_) return;
  if (begins)
    drawn_outside_ = drawn_since();
  else
    look();
}

bool StepUndo::put_back() {
  if (!std::exchange(remembers_, false)) return true;
  // In the middle of a pass (an optimizer that calls the model itself) the numbers drawn are the pass's.
  const bool outside = drawn_outside_ || (depth_ == 0 && drawn_since());
  if (!outside) random_.restore();
  buffers_.restore();
  forget();
  return !outside;
}

void StepUndo::forget() {
  buffers_ = {};
  random_ = {};
  seen_.clear();
  remembers_ = drawn_outside_ = false;
}

}  // namespace nanquest::attach
