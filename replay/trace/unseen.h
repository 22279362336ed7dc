/// unseen: what of a recorded step nobody could look at.
///
/// "Nothing harmful in this step" is only true of a step whose values were all seen, by the recorder or in the
/// run as recorded. Memory that is not plain (sparse, nested, on a device that the probe can't read) has no
/// values on record, and an op that can't be run again without recorded outputs has none in a replay either.
#pragma once

#include <functional>

#include "replay/trace/replayer.h"

namespace nanquest {

struct UnseenValues {
  std::vector<OpId> ops;  ///< made or wrote numbers that nobody saw; ops that only look at memory don't count
  bool loss = false;      ///< there is a loss, and nobody saw it
  int gradients = 0;      ///< that were there and that nobody saw

  bool any() const { return loss || gradients > 0 || !ops.empty(); }
};

/// What was not seen: neither on record nor in the whole run as recorded, which is asked for only if something is
/// missing. Element types without NaN and Inf need not be seen. Of an operator that this process does not know it
/// is taken that it made what it returned.
UnseenValues find_unseen(const TraceGraph& graph, const std::function<const RunResult&()>& as_recorded);

}  // namespace nanquest
