/// Calls that only pass through: the op that does the work is dispatched again, further down.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

namespace nanquest {

/// True if a call with these arguments is handled by a dispatch mode, a tensor subclass with
/// __torch_dispatch__, a transform of torch.func or functionalisation. They hand it on as calls on plain
/// tensors, which are observed in its place (or, for fake tensors, do nothing that anybody could look at).
bool passes_through(c10::ArrayRef<const c10::IValue> inputs);

}  // namespace nanquest
