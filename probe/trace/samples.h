/// Samples of a recorded batch.
#pragma once

#include <cstdint>
#include <string>

#include "probe/snapshot/model.h"

namespace nanquest {

/// Number of samples in the batch: the common first dimension of its tensors, if it agrees with the sample
/// ids, which are those of one or more of the step's passes (micro-batches); 0 if unknown.
std::int64_t batch_size(const SnapshotDoc& doc);

/// The id of a sample of the batch; "" if the step has none, or several passes, whose samples can't be told
/// apart by their index.
std::string sample_id(const SnapshotDoc& doc, std::int64_t sample);

}  // namespace nanquest
