#include "probe/record/lead_search.h"

#include <algorithm>

#include "probe/observe/op_traits.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/births.h"
#include "probe/trace/collectives.h"
#include "probe/trace/op_numbers.h"
#include "probe/trace/regions.h"

namespace nanquest::record {
namespace {

bool is_bad(const at::Tensor* values) {
  const auto stats = values ? stats_of(*values, /*hash=*/false) : std::nullopt;
  return stats && stats->non_finite() > 0;
}

/// If the inputs of such an op are finite and a result is not, something that is not on record wrote into it.
bool only_moves(const OpRow& op) {
  return moves_elements(op.name) || makes_numbers(op.name) || computes_nothing(op);
}

}  // namespace

const at::Tensor* data_at(const Recording& recording, const std::string& path) {
  const auto found = std::find_if(recording.data.begin(), recording.data.end(),
                                  [&](const auto& data) { return data.first == path; });
  return path.empty() || found == recording.data.end() ? nullptr : &found->second;
}

std::vector<SlotId> LeadSearch::bad() const {
  std::vector<SlotId> found;
  for (const SlotId slot : ids_of<Slot>(graph_.doc())) {
    const SlotId now = source_.now[slot.index()];
    if (!now || source_.changed[slot.index()] || !written_between(slot)) continue;
    const Slot& memory = get(step_.doc, now);
    if (memory.origin != SlotOrigin::input && memory.origin != SlotOrigin::external) continue;
    if (is_bad(data_at(step_, memory.data))) found.push_back(slot);
  }
  return found;
}

std::optional<std::set<OpId>> LeadSearch::ops_behind(SlotId slot) const {
  std::set<OpId> ops;
  std::vector<OpId> open;
  bool from_state = false;  // bad values of a weight, buffer or moment were read
  const auto add = [&](OpId op) {
    if (!(op < source_.first) && ops.insert(op).second) open.push_back(op);
    return false;
  };
  for (const TraceGraph::Write& write : graph_.writes(slot)) add(write.op);
  while (!open.empty()) {
    const OpId op = open.back();
    open.pop_back();
    if (is_meant(op)) return std::set<OpId>();
    if (!can_run(op)) return std::nullopt;
    for (const TensorId row : graph_.reads(op))
      (void)graph_.each_write_behind(row, op, [&](const TraceGraph::Write& write) { return add(write.op); });
    for (const SlotId used : slots_of(op)) {
      if (is_made_between(used)) continue;
      const at::Tensor* const first = first_values(used);
      if (!first) return std::nullopt;
      if (is_bad(first)) {
        if (!is_state(used)) return std::set<OpId>();
        from_state = true;
      }
      // What else lies in memory that it writes to.
      for (const TraceGraph::Write& write : graph_.writes(used))
        if (write.op < op) add(write.op);
    }
  }
  const auto moves = [&](OpId op) { return only_moves(graph_.op(op)); };
  if (!from_state && std::all_of(ops.begin(), ops.end(), moves)) return std::nullopt;
  return ops;
}

bool LeadSearch::is_state(SlotId slot) const {
  const SlotOrigin origin = get(graph_.doc(), slot).origin;
  return origin == SlotOrigin::parameter || origin == SlotOrigin::buffer ||
         origin == SlotOrigin::optimizer_state;
}

bool LeadSearch::was_written_before(SlotId slot) const {
  const auto& writes = graph_.writes(slot);
  return !writes.empty() && writes.front().op < source_.first;
}

bool LeadSearch::written_between(SlotId slot) const {
  const auto& writes = graph_.writes(slot);
  return !writes.empty() && !(writes.back().op < source_.first);
}

bool LeadSearch::is_made_between(SlotId slot) const {
  return get(graph_.doc(), slot).origin == SlotOrigin::produced && written_between(slot) &&
         !was_written_before(slot);
}

/// The present step found it as the update had left it.
bool LeadSearch::is_as_now(SlotId slot) const {
  return source_.now[slot.index()] && !source_.changed[slot.index()] && !written_between(slot);
}

const at::Tensor* LeadSearch::first_values(SlotId slot) const {
  if (!was_written_before(slot) && source_.lost[slot.index()]) return nullptr;
  if (!was_written_before(slot)) return data_at(source_.before, get(graph_.doc(), slot).data);
  return is_as_now(slot) ? data_at(step_, get(step_.doc, source_.now[slot.index()]).data) : nullptr;
}

std::vector<SlotId> LeadSearch::slots_of(OpId op) const {
  std::vector<SlotId> slots;
  const auto add = [&](TensorId row) {
    if (const SlotId slot = row ? graph_.slot(row) : SlotId{}) slots.push_back(slot);
  };
  for (const TraceGraph::Argument& argument : graph_.arguments(op)) add(argument.row);
  for (const TensorId row : graph_.outputs(op)) add(row);
  return slots;
}

/// A number of the program is bad itself.
bool LeadSearch::is_meant(OpId op) const {
  const OpRow& row = graph_.op(op);
  return bad_constants(graph_.doc(), op).any() ||
         ((row.flags & kOpHostWrite) && is_bad(data_at(source_.before, row.host_data)));
}

bool LeadSearch::can_run(OpId op) const {
  const OpRow& row = graph_.op(op);
  return !(row.flags & (kOpOpaque | kOpFailed)) && !is_collective(row.name) && row.name != kCompiledRegion &&
         row.phase != Phase::backward;
}

}  // namespace nanquest::record
