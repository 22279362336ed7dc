/// Calls that only pass through: the op that does the work is dispatched again, further down.
#pragma once

#include <ATen/core/ivalue.h>
#include <c10/util/ArrayRef.h>

namespace nanquest {

/// True if a call with these arguments is handled by a dispatch mode, a tensor subclass with
/// __torch_dispatch__, a transform of torch.func or functionalisation. They pass it on as calls on plain
/// tensors, which are observed instead (or, for fake tensors, compute nothing).
bool passes_through(c10::ArrayRef<const c10::IValue> inputs);

}  // namespace nanquest
