/// The end of a recording, shared by record_step and by standing traces.
#pragma once

#include <memory>
#include <vector>

#include "probe/capture/record.h"
#include "probe/capture/recorder.h"

namespace nanquest {

/// Fills what a doc says about run, machine and step, from `state` and the process.
void fill_header(SnapshotDoc& doc, const StepState& state);

/// Finds the culprit and turns the stacks of it and of its forward op into words. False if there is none.
bool find_and_symbolise_culprit(SnapshotDoc& doc, const TraceRecorder& recorder);

/// Turns the stacks of all ops into words, where only replay will find the culprit. `stacks`: per op.
void symbolise_all(SnapshotDoc& doc, const std::vector<std::shared_ptr<Stack>>& stacks);

}  // namespace nanquest
