/// Does anybody still hold what a tensor was computed from?
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace nanquest::attach {

/// Tells, whenever it is called, whether the graph behind `t` is still held by somebody; empty if `t` has
/// none. Holds nothing itself.
std::function<bool()> graph_holder(const at::Tensor& t);

}  // namespace nanquest::attach
