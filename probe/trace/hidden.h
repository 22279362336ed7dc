/// hidden: damage that no loss and no gradient shows.
#pragma once

#include <cstdint>
#include <vector>

#include "probe/trace/graph.h"

namespace nanquest {

/// True if what the op wrote left the range of its format although it is finite one precision up: damage even
/// where later ops turn the infinity into zeros. Not so for what saturates on purpose (exp in a wide format).
bool hides_overflow(const TraceGraph& graph, OpId op);

/// Those ops of a watched trace, in order: rows of doc.ops.
std::vector<std::int32_t> hidden_overflows(const SnapshotDoc& doc);

}  // namespace nanquest
