/// unseen: which values of a recorded step could not be looked at.
///
/// "Nothing harmful in this step" is only true if all values of the step were seen, by the recorder or in the
/// run as recorded. Memory that is not plain (sparse, nested, on a device that the probe can't read) has no
/// recorded values, and an op that can't be run again and has no recorded outputs has none in a replay
/// either.
#pragma once

#include <functional>

#include "replay/trace/replayer.h"

namespace nanquest {

struct UnseenValues {
  std::vector<OpId> ops;  ///< made or wrote numbers that were not seen; ops that only look at memory don't
                          ///< count
  bool loss = false;      ///< there is a loss, and it was not seen
  int gradients = 0;      ///< number that exist and were not seen

  bool any() const { return loss || gradients > 0 || !ops.empty(); }
};

/// What was not seen: neither recorded nor in the whole run as recorded, which is asked for only if something
/// is missing. Element types without NaN and Inf need not be seen. An operator that this process does not
/// know is assumed to have made its results.
UnseenValues find_unseen(const TraceGraph& graph, const std::function<const RunResult&()>& as_recorded);

}  // namespace nanquest
