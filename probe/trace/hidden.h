/// hidden: damage that no loss and no gradient shows.
#pragma once

#include <cstdint>
#include <vector>

#include "probe/trace/graph.h"

namespace nanquest {

/// True if the op's result left the range of its format although it is finite one precision up, and a finite
/// value came out wrong because of it. If it could not be followed (OpFlag kOpHides…): unless it saturates on
/// purpose (exp in a wide format).
bool hides_overflow(const TraceGraph& graph, OpId op);

/// Ops of a watched trace that hide damage, in order: rows of doc.ops.
std::vector<std::int32_t> hidden_overflows(const SnapshotDoc& doc);

}  // namespace nanquest
