/// origins: the role of a value that the step did not compute.
#pragma once

#include <functional>
#include <string>

#include "probe/trace/graph.h"

namespace nanquest {

/// The role of a storage in the trace. Storages without a name get it from their users: memory that was
/// differentiable before the step, or that a sharded model gathers, is a parameter; memory that only the
/// optimizer reads and writes is its state; differentiable memory that only the backward pass reads was made
/// inside an op. All others are `external`: an input.
SlotOrigin origin_of(const TraceGraph& graph, SlotId slot);

/// Whether the step made this memory, and something that lives on lies in it at the end: a buffer or a copy of
/// the weights that got other memory.
inline bool is_made_state(const Slot& slot) {
  return slot.origin == SlotOrigin::produced && !slot.name.empty();
}

/// Whether an outside value comes with the batch, named or not; the others persist from step to step.
constexpr bool comes_with_batch(SlotOrigin origin) {
  return origin == SlotOrigin::input || origin == SlotOrigin::external;
}

/// Marks as gradients: outside memory without a name into which the backward pass accumulates. True if there
/// was any.
bool mark_old_gradients(SnapshotDoc& doc);

/// The name of an op's argument at `position`, "" if not known. Implemented by code that knows the schemas.
using ArgumentName = std::function<std::string(const OpRow& op, std::int32_t position)>;

/// A name for outside memory that has none: "tensor first read by aten::mul in encoder.0, argument other".
std::string first_read_words(const TraceGraph& graph, SlotId slot, const ArgumentName& argument_name);

}  // namespace nanquest
