/// Samples of a recorded batch.
#pragma once

#include <cstdint>

#include "probe/snapshot/model.h"

namespace nanquest {

/// Number of samples in the batch: the common first dimension of its tensors, if it agrees with the sample
/// ids; 0 if unknown.
std::int64_t batch_size(const SnapshotDoc& doc);

}  // namespace nanquest
