/// origins: to whom a value belongs that the step did not compute.
#pragma once

#include <functional>
#include <string>

#include "probe/trace/graph.h"

namespace nanquest {

/// What a storage of the trace is. What has no name belongs to who uses it: memory that was differentiable
/// before the step, or that a sharded model gathers, is a parameter; memory that only the optimizer reads and
/// writes is its state; what the backward pass alone reads and is differentiable was made inside an op.
/// `external` is what is left: an input.
SlotOrigin origin_of(const TraceGraph& graph, SlotId slot);

/// Whether an outside value comes with the batch, named or not; the others live on from step to step.
constexpr bool comes_with_batch(SlotOrigin origin) {
  return origin == SlotOrigin::input || origin == SlotOrigin::external;
}

/// Marks as gradients: outside memory without a name into which the backward pass accumulates. True if there
/// was some.
bool mark_old_gradients(SnapshotDoc& doc);

/// The name of an op's argument at `position`, "" if it is not known. Asked of somebody who knows schemas.
using ArgumentName = std::function<std::string(const OpRow& op, std::int32_t position)>;

/// A name for outside memory that has none: "tensor first read by aten::mul in encoder.0, argument other".
std::string first_read_words(const TraceGraph& graph, SlotId slot, const ArgumentName& argument_name);

}  // namespace nanquest
