#include "probe/attach/pass_results.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "probe/attach/losses.h"
#include "probe/observe/observer.h"

namespace nanquest::attach {
namespace {

/// A loss that is an element of a large tensor would keep all of it alive.
constexpr std::size_t kScalarBytes = 64;

bool is_bad_number(const at::Tensor& t) {
  return t.defined() && t.numel() == 1 && t.is_cpu() && t.is_floating_point() && !holds_finite(t);
}

}  // namespace

void PassResults::note(c10::ArrayRef<const c10::IValue> outputs) {
  if (outputs.size() != 1 || !outputs[0].isTensor()) return;
  const at::Tensor& t = outputs[0].toTensor();
  if (!t.defined() || t.numel() != 1 || !t.requires_grad() || !t.is_floating_point() ||
      current_node().in_backward)
    return;
  if (t.layout() != at::kStrided || t.storage_offset() != 0 || t.storage().nbytes() > kScalarBytes) return;
  last_ = {t.storage(), t.scalar_type(), WeakGraph(t)};
}

void PassResults::inner_gradient() {
  inner_gradients_ = true;
  last_.scalar = {};
}

at::Tensor PassResults::number() const {
  if (!last_.scalar) return {};
  return at::empty({0}, at::TensorOptions(last_.type)).set_(last_.scalar, 0, {}, {});
}

bool PassResults::bad() const {
  if (inner_gradients_ && number_held()) return false;
  if (!last_.scalar || last_.scalar.device() != at::kCPU ||
      last_.scalar.nbytes() < c10::elementSize(last_.type))
    return false;
  return !holds_finite(number());
}

bool PassResults::doubtful_shares(const std::vector<at::Tensor>& roots) const {
  return doubt_->number.graph.reached_from(roots) || std::any_of(roots.begin(), roots.end(), is_bad_number);
}

std::vector<std::string> PassResults::settle() {
  return std::move(std::exchange(doubt_, std::nullopt)->samples);
}

std::vector<std::string> PassResults::throw_away() {
  last_.scalar = std::move(doubt_->number.scalar);
  last_.type = doubt_->number.type;
  return settle();
}

}  // namespace nanquest::attach
