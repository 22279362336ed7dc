/// The memory that an op is about to read or write, from its arguments.
#pragma once

#include <ATen/core/ivalue.h>

namespace nanquest {

/// The memory of a tensor, or of the first of a list (as in foreach and fused optimizers); null for anything
/// else and for tensors without storage. Does not keep it alive.
const c10::StorageImpl* memory_of(const c10::IValue& value);

}  // namespace nanquest
