/// Validates a doc. The writer checks before it stores one, the reader before it returns one. Internal to
/// this room.
#pragma once

#include "probe/base/result.h"
#include "probe/snapshot/model.h"

namespace nanquest {

/// Ok if every index column is in range (kNone where the model allows it), every range lies inside its
/// table, argument tokens nest properly (at most 32 deep), shapes and views don't overflow 64 bits, and
/// history tables are rectangular with usable names. Else `bad_file`, "trace/ops row 3: module 17 of 4".
Status check_doc(const SnapshotDoc& doc);

}  // namespace nanquest
