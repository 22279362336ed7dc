/// culprit: makes sure that a doc names its culprit, and the right one, before it is examined.
#pragma once

#include "probe/snapshot/model.h"
#include "replay/blame/suspects.h"

namespace nanquest {

/// Runs probe/trace's analysis again if the doc names none. A collective is not the culprit if this rank
/// itself passed the bad values to it. Then the culprit is their origin, often a sharded weight that the
/// program gathers before it computes.
void ensure_culprit(SnapshotDoc& doc);

/// Names `suspect` as the culprit of the tables, with arguments named as in operator schemas of this version.
void blame_suspect(SnapshotDoc& doc, const Suspect& suspect);

}  // namespace nanquest
