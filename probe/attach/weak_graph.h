/// What a tensor was computed from, known but not held.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace nanquest::attach {

/// The autograd graph behind one tensor. Keeps nothing of it alive; its functions are called on the thread
/// that trains.
class WeakGraph {
 public:
  WeakGraph() = default;
  /// Of `t`; of a tensor that has none, nothing.
  explicit WeakGraph(const at::Tensor& t);

  /// Whether somebody still holds it, so that it can be differentiated.
  bool held() const { return node_ && node_() != nullptr; }
  /// Whether a backward pass that starts at `roots` runs through it. Looks at the whole graph behind them.
  bool reached_from(const std::vector<at::Tensor>& roots) const;

 private:
  std::function<const torch::autograd::Node*()> node_;  ///< null once nobody holds it; empty: there was none
};

}  // namespace nanquest::attach
