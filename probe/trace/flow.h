/// flow: which memory of a recorded step values of other memory get into.
///
///     const SlotSet reached = reached_by(graph, {damaged}, graph.ops().front());
///     if (reached[loss]) …                       // the loss was computed from it
///
/// By storages, not by values: what is not reached does not depend on them; what is reached may.
#pragma once

#include <vector>

#include "probe/trace/graph.h"

namespace nanquest {

using SlotSet = PerRow<Slot, bool>;

/// True for a running statistic that a batch norm in training only updates: no other result of the op
/// depends on it. `row` is among the op's reads.
bool only_updates(const TraceGraph& graph, OpId op, TensorId row);

/// Whether an op uses values that the storage had before the step wrote to it.
bool old_value_used(const TraceGraph& graph, SlotId slot);

/// The storages `from`, and all that ops from `first` on computed from them.
SlotSet reached_by(const TraceGraph& graph, const std::vector<SlotId>& from, OpId first);

/// The same through floating-point values only: not through indices, counts and truth values, by which no
/// derivative passes.
SlotSet reached_in_floats(const TraceGraph& graph, const std::vector<SlotId>& from, OpId first);

}  // namespace nanquest
