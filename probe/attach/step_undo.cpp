#include "probe/attach/step_undo.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

namespace nanquest::attach {
namespace {

at::Tensor state_of(const at::Generator& it) {
  at::Generator generator = it;  // asking is no const function
  const std::lock_guard<std::mutex> lock(generator.mutex());
  return generator.get_state();
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

}  // namespace

void StepUndo::remember(const std::vector<at::Tensor>& buffers, const std::vector<at::Device>& devices) {
  forget();
  for (const at::Tensor& buffer : buffers) buffers_.watch_buffer(buffer);
  buffers_.save();
  for (const at::Device device : devices) {
    const at::Generator& generator = at::globalContext().defaultGenerator(device);
    const at::Tensor now = state_of(generator);
    random_.push_back({generator, now, now});
  }
  remembers_ = true;
}

bool StepUndo::drawn_since() const {
  return std::any_of(random_.begin(), random_.end(),
                     [](const Random& r) { return !same(r.seen, state_of(r.generator)); });
}

void StepUndo::pass(bool begins) {
  if (begins && depth_++ > 0) return;
  if (!begins && (depth_ == 0 || --depth_ > 0)) return;
  if (!remembers_ || drawn_outside_) return;
  if (begins)
    drawn_outside_ = drawn_since();
  else
    for (Random& r : random_) r.seen = state_of(r.generator);
}

bool StepUndo::put_back() {
  if (!std::exchange(remembers_, false)) return true;
  // In the middle of a pass (an optimizer that calls the model itself) the numbers drawn belong to the pass.
  const bool outside = drawn_outside_ || (depth_ == 0 && drawn_since());
  if (!outside)
    for (Random& r : random_) {
      const std::lock_guard<std::mutex> lock(r.generator.mutex());
      r.generator.set_state(r.began);
    }
  buffers_.restore();
  forget();
  return !outside;
}

void StepUndo::forget() {
  buffers_ = {};
  random_.clear();
  remembers_ = drawn_outside_ = false;
}

}  // namespace nanquest::attach
