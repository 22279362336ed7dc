#include "probe/attach/named_list.h"

#include <algorithm>

namespace nanquest::attach {

std::size_t NamedList::put(const std::string& name, const at::Tensor& tensor) {
  const auto [at, fresh] = index_.try_emplace(name, entries_.size());
  if (fresh) entries_.push_back({name, WeakTensor()});
  (void)renew(at->second, tensor);
  return at->second;
}

bool NamedList::renew(std::size_t index, const at::Tensor& tensor) {
  WeakTensor& known = entries_[index].tensor;
  if (known.is(tensor)) return false;
  ++revision_;
  known = WeakTensor(tensor);
  return true;
}

std::size_t NamedList::add(const std::string& name, const at::Tensor& tensor, bool keeps_freed) {
  constexpr int kTried = 8;
  constexpr std::size_t kMostKept = 256;
  const bool reuses = !keeps_freed || entries_.size() >= kMostKept;
  int& last = last_[name];
  std::string used = name;
  for (int n = 1;; n = n == kTried ? std::max(last, n + 1) : n + 1) {
    if (n > 1) used = name + "#" + std::to_string(n);
    const auto found = index_.find(used);
    if (found != index_.end() && (!reuses || entries_[found->second].tensor.alive())) continue;
    last = n;
    return put(used, tensor);
  }
}

void NamedList::clear() {
  ++revision_;
  entries_.clear();
  index_.clear();
  last_.clear();
}

at::Tensor NamedList::named(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? at::Tensor() : entries_[found->second].tensor.lock();
}

bool NamedList::any_in(const c10::StorageImpl* storage) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& e) { return e.tensor.lies_in(storage); });
}

std::size_t NamedList::freed() const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(), [](const Entry& e) { return !e.tensor.alive(); }));
}

NamedTensors NamedList::living() const {
  NamedTensors tensors;
  tensors.reserve(entries_.size());
  for (const Entry& entry : entries_)
    if (at::Tensor tensor = entry.tensor.lock(); tensor.defined())
      tensors.emplace_back(entry.name, std::move(tensor));
  return tensors;
}

}  // namespace nanquest::attach
