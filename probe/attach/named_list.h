/// Tensors by name, in the order they were named first. They are not kept alive.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "probe/attach/weak_tensor.h"
#include "probe/record/record.h"

namespace nanquest::attach {

class NamedList {
 public:
  /// A name given again means the new tensor: programs replace buffers and states. Returns its index.
  std::size_t put(const std::string& name, const at::Tensor& tensor);
  /// A name that a living tensor has gets a number; that of a freed one is taken over (a model built anew).
  /// Returns the index.
  std::size_t add(const std::string& name, const at::Tensor& tensor);
  void clear();
  bool empty() const { return entries_.empty(); }

  /// Another number whenever the list was changed.
  std::uint64_t revision() const { return revision_; }
  std::size_t size() const { return entries_.size(); }
  const std::string& name(std::size_t index) const { return entries_[index].name; }
  const WeakTensor& tensor(std::size_t index) const { return entries_[index].tensor; }
  /// The tensor of this name; undefined if there is none, or it is gone.
  at::Tensor named(const std::string& name) const;
  /// Whether a tensor of the list lies in this storage, which is alive.
  bool any_in(const c10::StorageImpl* storage) const;
  /// All that are alive, as aliases of their memory.
  NamedTensors living() const;

 private:
  struct Entry {
    std::string name;
    WeakTensor tensor;
  };
  std::vector<Entry> entries_;
  std::uint64_t revision_ = 0;
  std::unordered_map<std::string, std::size_t> index_;
};

}  // namespace nanquest::attach
