/// What the file of one process says of the others that made the step with it.
#pragma once

#include "probe/snapshot/model.h"
#include "probe/snapshot/rank_row.h"

namespace nanquest {

/// Stores in `doc` the members of the process groups whose collectives are recorded. The groups must still
/// exist.
void add_process_groups(SnapshotDoc& doc);

/// Stores in `doc` that DistributedDataParallel keeps the weights alike on these ranks ("0 1 2"; "": it does
/// not), except `others`, one name per line.
void add_replicas(SnapshotDoc& doc, const std::string& ranks, const std::string& others);

/// What this rank reports of the step (election.h): where its culprit came from, or that its own loss is bad,
/// or nothing.
RankRow row_of(const SnapshotDoc& doc, bool loss_bad);

}  // namespace nanquest
