#include "probe/attach/named_list.h"

namespace nanquest::attach {

void NamedList::put(const std::string& name, const at::Tensor& tensor) {
  const auto [at, fresh] = index_.emplace(name, tensors_.size());
  if (fresh)
    tensors_.emplace_back(name, tensor);
  else
    tensors_[at->second].second = tensor;
}

std::string NamedList::add(const std::string& name, const at::Tensor& tensor) {
  std::string used = name;
  for (int n = 2; index_.contains(used); ++n) used = name + "#" + std::to_string(n);
  put(used, tensor);
  return used;
}

void NamedList::clear() {
  tensors_.clear();
  index_.clear();
}

}  // namespace nanquest::attach
