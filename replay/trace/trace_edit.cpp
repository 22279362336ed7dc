// What a TraceEdit changes: the precision of each op, and where the changes begin.
#include <algorithm>
#include <string_view>

#include "replay/trace/replayer.h"

namespace nanquest {
namespace {

/// The longest of these module paths that covers the op; null if none does.
const Precision* covering_module(const TraceGraph& graph, OpId op,
                                 const std::map<std::string, Precision>& modules) {
  const std::string_view path = graph.module_of(op);
  std::size_t best = 0;
  const Precision* found = nullptr;
  for (const auto& [module, precision] : modules) {
    const bool covers = module.empty() || path == module || path.starts_with(module + ".");
    if (!covers || module.size() + 1 <= best) continue;
    best = module.size() + 1;
    found = &precision;
  }
  return found;
}

}  // namespace

PerRow<OpRow, Precision> precision_of_ops(const TraceGraph& graph, Precision general, const TraceEdit& edit) {
  PerRow<OpRow, Precision> result(graph.doc().ops.size(), general);
  if (!edit.module_precision.empty())
    for (const OpId op : graph.ops())
      if (const Precision* own = covering_module(graph, op, edit.module_precision)) result[op] = *own;
  for (const auto& [op, precision] : edit.op_precision)
    if (result.holds(OpId{op})) result[OpId{op}] = precision;
  return result;
}

TraceEdit TraceEdit::then(const TraceEdit& next) const {
  TraceEdit both = next;
  both.op_precision.insert(op_precision.begin(), op_precision.end());
  both.module_precision.insert(module_precision.begin(), module_precision.end());
  both.stand_ins.insert(stand_ins.begin(), stand_ins.end());
  const auto chain = [](auto& edits, const auto& first) {
    for (const auto& [what, how] : first) {
      const auto [at, added] = edits.emplace(what, how);
      if (!added)
        at->second = [how = how, after = at->second](auto& values) {
          how(values);
          after(values);
        };
    }
  };
  chain(both.slot_edit, slot_edit);
  chain(both.output_edit, output_edit);
  for (const auto& [op, how] : op_edit) {
    const auto [at, added] = both.op_edit.emplace(op, how);
    if (!added)  // an op whose results were put in its place is not run, so nothing reads its arguments
      at->second = [how = how, after = at->second](std::vector<c10::IValue>& stack) {
        return how(stack) || after(stack);
      };
  }
  return both;
}

OpId TraceEdit::first_op(const TraceGraph& graph) const {
  OpId first = graph.end();
  const auto add = [&](std::int32_t op) { first = std::min(first, OpId{op}); };
  if (!op_precision.empty()) add(op_precision.begin()->first);
  if (!op_edit.empty()) add(op_edit.begin()->first);
  if (!output_edit.empty()) add(output_edit.begin()->first);
  for (const auto& [slot, edit] : slot_edit) {
    if (slot < 0 || static_cast<std::size_t>(slot) >= graph.doc().slots.size()) continue;
    if (!graph.reads(SlotId{slot}).empty()) first = std::min(first, graph.reads(SlotId{slot}).front().op);
    if (!graph.writes(SlotId{slot}).empty()) first = std::min(first, graph.writes(SlotId{slot}).front().op);
  }
  if (!module_precision.empty())
    for (const OpId op : graph.ops())
      if (op < first && covering_module(graph, op, module_precision)) first = op;
  return first;
}

}  // namespace nanquest
