#include "probe/attach/graph_holder.h"

#include <torch/csrc/autograd/function.h>

#include <memory>

namespace nanquest::attach {
namespace {

// Nodes are counted by shared_ptr in LibTorch 2.11, in themselves in 2.15.
template <class Node>
std::function<bool()> holder(const std::shared_ptr<Node>& node) {
  return [weak = std::weak_ptr<Node>(node)] { return !weak.expired(); };
}
template <class Node>
std::function<bool()> holder(const c10::intrusive_ptr<Node>& node) {
  return [weak = c10::weak_intrusive_ptr<Node>(node)] { return !weak.expired(); };
}

}  // namespace

std::function<bool()> graph_holder(const at::Tensor& t) {
  return t.grad_fn() ? holder(t.grad_fn()) : std::function<bool()>();
}

}  // namespace nanquest::attach
