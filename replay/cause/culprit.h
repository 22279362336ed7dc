/// culprit: makes sure that a doc names its culprit, and the right one, before it is examined.
#pragma once

#include "probe/snapshot/model.h"
#include "replay/blame/suspects.h"

namespace nanquest {

/// Runs probe/trace's analysis again if the doc names none. A collective is no culprit if this rank itself
/// put the bad values into it: then it is what they came from, often a weight that other processes hold parts
/// of, which the program gathers before it computes.
void ensure_culprit(SnapshotDoc& doc);

/// Names `suspect` as the culprit of the tables, as arguments of operators are named here.
void blame_suspect(SnapshotDoc& doc, const Suspect& suspect);

}  // namespace nanquest
