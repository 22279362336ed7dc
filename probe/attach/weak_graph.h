/// What a tensor was computed from, without keeping it alive.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace nanquest::attach {

/// The autograd graph behind one tensor. Keeps nothing of it alive; call its functions on the thread that
/// trains.
class WeakGraph {
 public:
  WeakGraph() = default;
  /// Of `t`; empty for a tensor without a graph.
  explicit WeakGraph(const at::Tensor& t);

  /// Whether it is still alive, so that it can be differentiated.
  bool held() const { return node_ && node_() != nullptr; }
  /// Whether a backward pass that starts at `roots` runs through it. Searches the whole graph behind them.
  bool reached_from(const std::vector<at::Tensor>& roots) const;

 private:
  std::function<const torch::autograd::Node*()> node_;  ///< null once it was freed; empty: there was none
};

}  // namespace nanquest::attach
