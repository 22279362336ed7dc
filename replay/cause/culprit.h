/// culprit: makes sure that a doc names its culprit before it is examined.
#pragma once

#include "probe/snapshot/model.h"

namespace nanquest {

/// Asks probe/capture's analysis again if the doc names none. Leaves a culprit that is there alone.
void ensure_culprit(SnapshotDoc& doc);

}  // namespace nanquest
