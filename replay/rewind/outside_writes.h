/// outside_writes: writes to weights or an optimizer's state on a tape that are no update.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/rewind/once_more.h"
#include "replay/rewind/tape_hooks.h"

namespace nanquest {

struct OutsideWrite {
  std::size_t step = 0;  ///< index of the step that it belongs to
  SlotId slot;
  TraceGraph::Write write;
};

/// Writes to parameters and optimizer state outside [gate, end) of every step, slot by slot. `steps` and
/// `spans` (spans_of) are those of the tape in `graph`.
std::vector<OutsideWrite> outside_writes(const TraceGraph& graph, std::span<const TapeStep> steps,
                                         std::span<const StepSpan> spans);

/// In a run with `hooks` the memory is restored after that write.
void take_back(const TraceGraph& graph, const OutsideWrite& write, TapeHooks& hooks);

/// Numbers of the steps with such writes, at most two, if few steps of the tape have any: what a program does
/// in every step is how it trains.
std::vector<std::int64_t> odd_steps(const TapeDoc& tape);

}  // namespace nanquest
