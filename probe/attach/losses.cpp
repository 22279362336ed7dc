#include "probe/attach/losses.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace nanquest::attach {

bool holds_finite(const at::Tensor& scalar) {
  return std::isfinite(scalar.item().toDouble());
}

void Losses::scaled(const at::Tensor& scaled, const at::Tensor& loss) {
  std::erase_if(scaled_, [](const Scaled& s) { return s.tensor.expired(); });
  if (loss.defined() && loss.numel() == 1)
    scaled_.push_back({WeakImpl(scaled.getIntrusivePtr()), loss.detach()});
}

void Losses::started(const at::Tensor& root, bool accumulates) {
  if (!root.defined() || root.numel() != 1 || !root.is_floating_point()) return;
  at::Tensor loss = root.detach();
  for (const Scaled& s : scaled_)
    if (s.tensor._unsafe_get_target() == root.unsafeGetTensorImpl() && !s.tensor.expired()) loss = s.loss;
  if (all_accumulate_ && !accumulates) return;
  if (!all_accumulate_) all_.clear();
  all_accumulate_ = accumulates;
  all_.push_back(std::move(loss));
}

void Losses::clear() {
  all_.clear();
  scaled_.clear();
  all_accumulate_ = false;
}

at::Tensor Losses::total() const {
  if (all_.size() < 2) return all_.empty() ? at::Tensor{} : all_.front();
  const at::NoGradGuard no_grad;
  at::Tensor sum = all_.front().to(at::kDouble).reshape({});
  for (std::size_t i = 1; i < all_.size(); ++i) sum = sum + all_[i].to(sum.device(), at::kDouble).reshape({});
  return sum;
}

at::Tensor Losses::telling() const {
  for (const at::Tensor& loss : all_)
    if (!holds_finite(loss)) return loss;
  return all_.empty() ? at::Tensor{} : all_.back();
}

bool Losses::bad() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const at::Tensor& l) { return l.is_cpu() && !holds_finite(l); });
}

}  // namespace nanquest::attach
