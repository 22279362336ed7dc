/// Tensors by name, in the order in which they were first named. They are not kept alive.
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
  /// A name that is given again now means the new tensor: programs replace buffers and states. Returns its
  /// index.
  std::size_t put(const std::string& name, const at::Tensor& tensor);
  /// If a living tensor has this name, adds a number to it; the name of a freed one is reused (a model built
  /// again), unless `keeps_freed` and there are few. Returns the index.
  std::size_t add(const std::string& name, const at::Tensor& tensor, bool keeps_freed = false);
  /// The same for the name at `index`. Returns whether it is another tensor than before: false at the price
  /// of a comparison.
  bool renew(std::size_t index, const at::Tensor& tensor);
  void clear();
  bool empty() const { return entries_.empty(); }

  /// A number that changes whenever the list changes.
  std::uint64_t revision() const { return revision_; }
  std::size_t size() const { return entries_.size(); }
  const std::string& name(std::size_t index) const { return entries_[index].name; }
  const WeakTensor& tensor(std::size_t index) const { return entries_[index].tensor; }
  /// The tensor of this name; undefined if there is none or it was freed.
  at::Tensor named(const std::string& name) const;
  /// How many have been freed.
  std::size_t freed() const;
  /// Whether a tensor of the list uses this storage, which must be alive.
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
  std::unordered_map<std::string, int> last_;  ///< number that `add` gave to a name last
};

}  // namespace nanquest::attach
