/// What memory an op is about to read or write, from its arguments.
#pragma once

#include <ATen/core/ivalue.h>

namespace nanquest {

/// The memory of a tensor, or of the first of a list (as foreach and fused optimizers take them); null for
/// anything else and for tensors without storage. Never kept alive by this.
const c10::StorageImpl* memory_of(const c10::IValue& value);

}  // namespace nanquest
