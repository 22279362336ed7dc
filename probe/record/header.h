/// What a file says of the run, the machine and the step, apart from the trace.
#pragma once

#include "probe/record/record.h"

namespace nanquest {

/// Fills it from `state` and from the process.
void fill_header(SnapshotDoc& doc, const StepState& state);

}  // namespace nanquest
