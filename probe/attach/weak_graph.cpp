#include "probe/attach/weak_graph.h"

#include <torch/csrc/autograd/function.h>

#include <memory>
#include <unordered_set>

namespace nanquest::attach {
namespace {

using torch::autograd::Node;

// LibTorch 2.11 counts nodes by shared_ptr, 2.15 in the node itself.
template <class T>
std::function<const Node*()> weakly(const std::shared_ptr<T>& node) {
  return [weak = std::weak_ptr<T>(node)] { return weak.lock().get(); };
}
template <class T>
std::function<const Node*()> weakly(const c10::intrusive_ptr<T>& node) {
  return [weak = c10::weak_intrusive_ptr<T>(node)] { return weak.lock().get(); };
}

}  // namespace

WeakGraph::WeakGraph(const at::Tensor& t) {
  if (t.grad_fn()) node_ = weakly(t.grad_fn());
}

bool WeakGraph::reached_from(const std::vector<at::Tensor>& roots) const {
  const Node* wanted = node_ ? node_() : nullptr;
  if (!wanted) return false;
  std::vector<const Node*> to_see;
  std::unordered_set<const Node*> seen;
  const auto add = [&](const Node* node) {
    if (node && seen.insert(node).second) to_see.push_back(node);
  };
  for (const at::Tensor& root : roots)
    if (root.defined()) add(root.grad_fn().get());
  while (!to_see.empty()) {
    const Node* node = to_see.back();
    to_see.pop_back();
    if (node == wanted) return true;
    for (const torch::autograd::Edge& edge : node->next_edges()) add(edge.function.get());
  }
  return false;
}

}  // namespace nanquest::attach
