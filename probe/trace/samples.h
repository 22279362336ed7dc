/// Samples of a recorded batch.
#pragma once

#include <cstdint>

#include "probe/snapshot/model.h"

namespace nanquest {

/// Samples in the batch: the common first dimension of its tensors, agreeing with the sample ids; 0 if
/// unknown.
std::int64_t batch_size(const SnapshotDoc& doc);

}  // namespace nanquest
