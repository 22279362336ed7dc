#include "replay/rewind/outside_writes.h"

#include <ATen/ATen.h>

#include <memory>
#include <set>
#include <vector>

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

void take_back(const TraceGraph& graph, const OutsideWrite& other, TapeHooks& hooks) {
  std::int32_t position = kNone, list = kNone;
  std::size_t element = 0, in_list = 0;  // of a list argument
  for (const TraceGraph::Argument& argument : graph.arguments(other.write.op)) {
    in_list = argument.position == list ? in_list + 1 : 0;
    list = argument.position;
    if (graph.slot(argument.row) != other.slot) continue;
    position = list;
    element = in_list;
    break;
  }
  const auto kept = std::make_shared<at::Tensor>();
  hooks.before(other.write.op.row(), [kept, position, element](std::vector<c10::IValue>& stack) {
    const auto i = static_cast<std::size_t>(position);
    if (position == kNone || i >= stack.size()) return;
    const std::vector<at::Tensor> given = stack[i].isTensor()       ? std::vector{stack[i].toTensor()}
                                          : stack[i].isTensorList() ? stack[i].toTensorVector()
                                                                    : std::vector<at::Tensor>();
    if (element < given.size() && given[element].defined()) *kept = whole_memory(given[element]).clone();
  });
  hooks.after(other.write.op.row(),
              [kept, entry = static_cast<std::size_t>(other.write.entry)](TapeHooks::Written& written) {
                if (kept->defined() && entry < written.size() && written[entry].defined())
                  whole_memory(written[entry]).copy_(*kept);
              });
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
