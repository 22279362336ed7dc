/// twin_rows: the last healthy step in the file of a bad one, as far as the bad one can be run on its batch.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "probe/record/record.h"
#include "probe/record/twin.h"

namespace nanquest::record {

/// A step and its tables.
struct StepRows {
  const Step& step;
  const SnapshotDoc& doc;
  const std::vector<std::int32_t>& ops;  ///< per op of the step, its row
  const std::vector<at::Tensor>& first;  ///< per slot, its first values
};

struct TwinRows {
  Twin twin;
  NamedTensors data;  ///< its values
};

/// What the twin read in the places of this step. Nothing unless it has a value for everything that this step
/// reads from outside, up to the loss and the gradients.
std::optional<TwinRows> twin_rows(const StepRows& ours, const TwinBatch& twin);

}  // namespace nanquest::record
