/// culprit: who did the harm in a recorded step.
///
///     if (find_culprit(doc)) say(describe_culprit(doc));
///
/// Needs the tables alone (statistics included), so recorder and replay ask the same question. Never throws
/// but for lack of memory.
#pragma once

#include <string>

#include "probe/snapshot/model.h"

namespace nanquest {

/// Finds the culprit by the blame order of design §5 and fills `doc.culprit`. False when the step
/// holds nothing harmful (then `doc.culprit.op` is kNone and `value` is empty). Harm is a non-finite loss,
/// gradient of a named parameter, or update of a named parameter or state: what is not named can't be harmed.
bool find_culprit(SnapshotDoc& doc);

/// One or two sentences: "aten::mm in blocks.1.mlp (forward) made 17 +Inf out of finite inputs".
std::string describe_culprit(const SnapshotDoc& doc);

}  // namespace nanquest
