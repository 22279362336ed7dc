/// gradients: what an update on a tape takes as the gradients of the weights that it writes.
#pragma once

#include <cstdint>
#include <vector>

#include "probe/base/result.h"
#include "probe/trace/graph.h"
#include "replay/rewind/once_more.h"

namespace nanquest {

/// Where one gradient has its last value before the gate: entry `entry` of what `op` wrote, completely.
struct TapeGradient {
  std::int32_t op = kNone;
  std::int32_t entry = 0;
};

/// What the ops of the update [step.gate, step.end) read and the same step made before its gate, with the
/// sizes of the weights that are written there, one for each; nothing if no weight is written. `unsupported`,
/// with the reason, if they can't be told apart, are parts of larger memory, or still carry a loss scale that
/// the optimizer itself removes. The step's update must have been made.
Result<std::vector<TapeGradient>> gradients_of(const TraceGraph& graph, const StepSpan& span,
                                               const TapeStep& step);

}  // namespace nanquest
