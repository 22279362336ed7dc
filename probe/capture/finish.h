/// The end of a recording, shared by record_step and by standing traces.
#pragma once

#include "probe/capture/record.h"
#include "probe/capture/recorder.h"

namespace nanquest {

/// Fills what a doc says about run, machine and step, from `state` and the process.
void fill_header(SnapshotDoc& doc, const StepState& state);

/// Finds the culprit and turns the stacks of it and of its forward op into words. False if there is none.
bool find_and_symbolise_culprit(SnapshotDoc& doc, const TraceRecorder& recorder);

}  // namespace nanquest
