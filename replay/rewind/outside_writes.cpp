#include "replay/rewind/outside_writes.h"

#include <set>

namespace nanquest {

std::vector<OutsideWrite> outside_writes(const TraceGraph& graph, std::span<const TapeStep> steps,
                                         std::span<const StepSpan> spans) {
  std::vector<OutsideWrite> found;
  const std::vector<Slot>& slots = graph.doc().slots;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].origin != SlotOrigin::parameter && slots[i].origin != SlotOrigin::optimizer_state) continue;
    const SlotId slot{static_cast<std::int32_t>(i)};
    for (const TraceGraph::Write& write : graph.writes(slot)) {
      const auto step = span_with(spans, write.op.row());
      if (step && (steps[*step].end == kNone || write.op.row() < steps[*step].gate))
        found.push_back({*step, slot, write});
    }
  }
  return found;
}

std::vector<std::int64_t> odd_steps(const TapeDoc& tape) {
  constexpr std::size_t kMost = 2;
  std::set<std::size_t> with;
  for (const OutsideWrite& write : outside_writes(TraceGraph(tape.trace), tape.steps, spans_of(tape)))
    with.insert(write.step);
  if (with.size() > kMost || with.size() * 4 > tape.steps.size()) return {};
  std::vector<std::int64_t> numbers;
  numbers.reserve(with.size());
  for (const std::size_t step : with) numbers.push_back(tape.steps[step].step);
  return numbers;
}

}  // namespace nanquest
