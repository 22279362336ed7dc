/// branch: was a value used? What backward sent to an op, and whether the loss depends on its result.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "replay/case/case.h"

namespace nanquest {

/// Ops of the backward node that `op` belongs to, in order; empty if it belongs to none.
std::vector<std::int32_t> node_ops(const Case& c, std::int32_t op);
/// Ops of backward that differentiate `forward`, in order.
std::vector<std::int32_t> derivative_ops(const Case& c, std::int32_t forward);

/// The gradients that the node of `op` received: what its ops read and backward made outside it, as recorded.
/// Each once.
std::vector<at::Tensor> incoming_gradients(const Case& c, std::int32_t op);
/// True if every true element of `bad`, a mask over something that this node made, was sent a gradient of
/// exactly zero. `reduced`: reduced_dimensions of the forward op.
bool sent_zero(const Case& c, std::int32_t op, const at::Tensor& bad,
               const std::vector<std::int64_t>& reduced);

/// The op that made the value from which the backward after `forward` started; kNone if unknown.
std::int32_t loss_after(const Case& c, std::int32_t forward);

/// True if the loss after `forward` stays the same, bit for bit in fp64, when the elements `mask` of its
/// result are changed: where() took the other branch, a mask of zeros multiplied them, a maximum took
/// another. Finite elements are moved by more than themselves, far one way and a little the other way (a
/// maximum ignores all that is smaller, and a little more of what is far below it): both must leave the loss
/// unchanged. Others become two different finite numbers, and both must leave it unchanged; or, if an op that
/// selects by value made something finite of them (relu of -Inf), two that are very large, unless `by_value`
/// is false. False if it can't be run.
bool loss_ignores(const Case& c, std::int32_t forward, const at::Tensor& mask, bool by_value = true);

/// The ops from which `forward` was computed, element by element, whose derivative is not finite either: a
/// selection after these comes too late for them. `mask` is one over the result of `forward`. The nearest
/// first.
std::vector<std::int32_t> singular_behind(const Case& c, std::int32_t forward, const at::Tensor& mask);

}  // namespace nanquest
