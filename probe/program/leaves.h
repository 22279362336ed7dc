/// Leaves: the weights of a program whose modules nobody can ask. A weight is a differentiable tensor that no
/// op made and that an update writes; it is called by its place among them, in the order of their first use,
/// and its sizes: "leaf 3 [128, 64]".
///
///     leaves.meet(t);                        // an op is about to read a differentiable tensor that no op
///     made leaves.look_again();                   // gradients are there: who has one becomes a weight if
///     (leaves.holds(storage)) …           // somebody writes to a weight
///
/// No tensor is kept alive. Of one thread.
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
  /// Gives a weight its name; the number by which the session knows it, below 0 if it does not take it.
  using Name = std::function<std::int64_t(const std::string& name, const at::Tensor& weight)>;
  explicit Leaves(Name name) : name_(std::move(name)) {}

  /// Whether `t` is such a tensor. Cheap.
  static bool is_leaf(const at::Tensor& t) { return t.defined() && t.requires_grad() && t.is_leaf(); }

  void meet(const at::Tensor& leaf);
  /// Forgets leaves that are gone, and learns where the others lie now.
  void look_again();
  /// Leaves that were met and now have a gradient get their names.
  void name_those_with_gradients();
  /// Whether a leaf lies in this memory, named or not.
  bool holds(const c10::StorageImpl* memory) const { return memory_.count(memory) > 0; }
  /// The leaf there, undefined if there is none that lives.
  at::Tensor at(const c10::StorageImpl* memory) const;
  /// Whether no weight has a gradient: the program has cleared them.
  bool all_cleared() const;
  /// Weights and their numbers: of those that lie in this memory, or (empty) of all that have a gradient.
  std::pair<std::vector<at::Tensor>, std::vector<std::int64_t>> weights(
      const std::unordered_set<const c10::StorageImpl*>& memory) const;

 private:
  using Weak = c10::weak_intrusive_ptr<at::TensorImpl, c10::UndefinedTensorImpl>;
  struct Leaf {
    Weak tensor;
    std::int64_t number;  ///< kUnnamed, or what the session said
  };
  static constexpr std::int64_t kUnnamed = -2;
  static at::Tensor lock(const Leaf& leaf);

  Name name_;
  std::vector<Leaf> leaves_;  // in the order in which they were met
  std::unordered_set<const at::TensorImpl*>
      known_;  // addresses stay theirs while `leaves_` holds them weakly
  std::unordered_map<const c10::StorageImpl*, std::size_t> memory_;  // to a place in leaves_
  std::size_t named_ = 0;
};

}  // namespace nanquest::program
