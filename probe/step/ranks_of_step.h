/// What the file of one process says of the others that made the step with it.
#pragma once

#include "probe/snapshot/model.h"
#include "probe/snapshot/rank_row.h"

namespace nanquest {

/// Notes in `doc` who the members of the process groups are whose collectives are on record. They must still
/// be there.
void add_process_groups(SnapshotDoc& doc);

/// What this rank says of the step (election.h): where its culprit came from, or that its own loss is bad, or
/// nothing.
RankRow row_of(const SnapshotDoc& doc, bool loss_bad);

}  // namespace nanquest
