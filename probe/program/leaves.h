/// Leaves: the weights of a program whose modules are not accessible. A weight is a differentiable tensor
/// that no op made and that an update writes. Its name is its place in the order of first use, with its
/// sizes: "leaf 3 [128, 64]".
///
///     leaves.meet(t);                     // an op is about to read a differentiable tensor that no op made
///     leaves.look_again();                // gradients exist: leaves with a gradient become weights
///     if (leaves.holds(storage)) …        // an op writes to a weight
///
/// No tensor is kept alive. Used by one thread.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace nanquest::program {

class Leaves {
 public:
  /// Names a weight; returns its number in the session, below 0 if the session refuses it.
  using Name = std::function<std::int64_t(const std::string& name, const at::Tensor& weight)>;
  explicit Leaves(Name name) : name_(std::move(name)) {}

  /// Whether `t` is such a tensor. Cheap.
  static bool is_leaf(const at::Tensor& t) { return t.defined() && t.requires_grad() && t.is_leaf(); }

  void meet(const at::Tensor& leaf);
  /// Forgets leaves that no longer exist, and updates the addresses of the others.
  void look_again();
  /// Names the leaves that now have a gradient.
  void name_those_with_gradients();
  /// Whether a leaf is in this memory, named or not.
  bool holds(const c10::StorageImpl* memory) const { return memory_.count(memory) > 0; }
  /// The leaf there, undefined if none exists.
  at::Tensor at(const c10::StorageImpl* memory) const;
  /// Whether no weight has a gradient: the program has cleared them.
  bool all_cleared() const;
  /// Weights and their numbers: those in this memory, or (if empty) all that have a gradient.
  std::pair<std::vector<at::Tensor>, std::vector<std::int64_t>> weights(
      const std::unordered_set<const c10::StorageImpl*>& memory) const;

 private:
  using Weak = c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>;
  struct Leaf {
    Weak tensor;
    std::int64_t number;  ///< kUnnamed, or the session's number
  };
  static constexpr std::int64_t kUnnamed = -2;
  static at::Tensor lock(const Leaf& leaf);

  Name name_;
  std::vector<Leaf> leaves_;  // in the order of first use
  std::unordered_set<const at::TensorImpl*>
      known_;  // an address is not reused while `leaves_` holds it weakly
  std::unordered_map<const c10::StorageImpl*, std::size_t> memory_;  // index into leaves_
  std::size_t named_ = 0;
};

}  // namespace nanquest::program
