#include "probe/program/leaves.h"

#include <ATen/ATen.h>

#include <sstream>

#include "probe/tensor/tensor_scan.h"

namespace nanquest::program {
namespace {

std::string name_of(std::size_t number, const at::Tensor& weight) {
  std::ostringstream text;
  text << "leaf " << number << ' ' << weight.sizes();
  return text.str();
}

}  // namespace

at::Tensor Leaves::lock(const Leaf& leaf) {
  auto alive = leaf.tensor.lock();
  return alive ? at::Tensor(std::move(alive)) : at::Tensor();
}

void Leaves::meet(const at::Tensor& leaf) {
  if (known_.count(leaf.unsafeGetTensorImpl()) || !is_plain(leaf)) return;
  known_.insert(leaf.unsafeGetTensorImpl());
  memory_.emplace(leaf.storage().unsafeGetStorageImpl(), leaves_.size());
  leaves_.push_back({Weak(leaf.getIntrusivePtr()), kUnnamed});
}

void Leaves::look_again() {
  std::erase_if(leaves_, [](const Leaf& leaf) { return leaf.tensor.expired(); });
  memory_.clear();
  known_.clear();
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    const at::Tensor leaf = lock(leaves_[i]);
    if (!leaf.defined()) continue;
    known_.insert(leaf.unsafeGetTensorImpl());
    if (leaf.has_storage()) memory_.emplace(leaf.storage().unsafeGetStorageImpl(), i);
  }
}

void Leaves::name_those_with_gradients() {
  for (Leaf& leaf : leaves_) {
    if (leaf.number != kUnnamed) continue;
    const at::Tensor weight = lock(leaf);
    if (weight.defined() && weight.grad().defined()) leaf.number = name_(name_of(named_++, weight), weight);
  }
}

at::Tensor Leaves::at(const c10::StorageImpl* memory) const {
  const auto found = memory_.find(memory);
  return found == memory_.end() ? at::Tensor() : lock(leaves_[found->second]);
}

bool Leaves::all_cleared() const {
  bool any = false;
  for (const Leaf& leaf : leaves_) {
    const at::Tensor weight = lock(leaf);
    if (weight.defined() && weight.grad().defined()) return false;
    any = any || weight.defined();
  }
  return any;
}

std::pair<std::vector<at::Tensor>, std::vector<std::int64_t>> Leaves::weights(
    const std::unordered_set<const c10::StorageImpl*>& memory) const {
  std::pair<std::vector<at::Tensor>, std::vector<std::int64_t>> found;
  for (const Leaf& leaf : leaves_) {
    if (leaf.number < 0) continue;
    at::Tensor weight = lock(leaf);
    if (!weight.defined()) continue;
    const bool wanted =
        memory.empty() ? weight.grad().defined() : memory.count(weight.storage().unsafeGetStorageImpl()) > 0;
    if (!wanted) continue;
    found.first.push_back(std::move(weight));
    found.second.push_back(leaf.number);
  }
  return found;
}

}  // namespace nanquest::program
