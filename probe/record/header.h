/// What a file says of run, machine and step beside the trace.
#pragma once

#include "probe/record/record.h"

namespace nanquest {

/// Fills it from `state` and the process.
void fill_header(SnapshotDoc& doc, const StepState& state);

}  // namespace nanquest
