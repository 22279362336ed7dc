#include "replay/trace/lead.h"

#include <exception>
#include <map>
#include <sstream>
#include <string>

#include "probe/trace/lead_ops.h"
#include "replay/trace/environment.h"
#include "replay/trace/replayer_state.h"

namespace nanquest::trace {
namespace {

/// By slot: the path of what the step found there.
std::map<SlotId, std::string> found_by_step(const SnapshotDoc& doc) {
  std::map<SlotId, std::string> found;
  const auto noted = doc.environment.find(kLeadFound);
  if (noted == doc.environment.end()) return found;
  std::istringstream entries(noted->second);
  for (std::string entry; std::getline(entries, entry, ';');) {
    std::istringstream parts(entry);
    std::int32_t slot = kNone;
    std::string path;
    if (parts >> slot >> path && find_row(doc, SlotId{slot})) found.emplace(SlotId{slot}, path);
  }
  return found;
}

/// The last row that ops before the step wrote of a slot.
TensorId last_written(const TraceGraph& graph, SlotId slot, OpId end) {
  TensorId last;
  for (const TraceGraph::Write& write : graph.writes(slot))
    if (write.op < end) last = write.row;
  return last;
}

/// Some of the memory is bad where it was found, and finite as these ops leave it.
bool is_refuted(const Replayer::Impl& impl, OpId end, const std::map<SlotId, std::string>& found) {
  const TraceEdit no_edit;
  const TraceGraph& graph = impl.plan().graph;
  Machine machine(impl.recorded(), impl.plan(), impl.source(), Precision::as_recorded, no_edit);
  for (const OpId op : graph.ops()) {
    if (!(op < end)) break;
    (void)machine.step(op);
    machine.finish(op);
  }
  for (const auto& [slot, path] : found) {
    const TensorId row = last_written(graph, slot, end);
    const StatsRow* then = row ? graph.stats(row) : nullptr;
    if (then && then->non_finite() > 0 && machine.slots().available(row) &&
        !badness(machine.slots().view(row)).any)
      return true;
  }
  return false;
}

void put_back(SnapshotDoc& doc, SlotId id, const std::string& path) {
  Slot& slot = get(doc, id);
  slot.data = path;
  if (slot.origin != SlotOrigin::produced) return;
  slot.origin = SlotOrigin::external;
  for (const NamedTensor& named : doc.batch)
    if (named.slot == id.row()) slot.origin = SlotOrigin::input, slot.name = named.name;
}

SnapshotDoc without_lead(const SnapshotDoc& recorded, std::int32_t count,
                         const std::map<SlotId, std::string>& found) {
  SnapshotDoc doc = recorded;
  doc.ops.erase(doc.ops.begin(), doc.ops.begin() + count);
  for (OpRow& op : doc.ops)
    if (op.forward_op != kNone) op.forward_op -= count;
  for (const auto& [slot, path] : found) put_back(doc, slot, path);
  doc.environment.erase(kLeadOps);
  doc.environment.erase(kLeadFound);
  return doc;
}

}  // namespace

std::optional<SnapshotDoc> without_refuted_lead(const Replayer::Impl& impl) {
  const SnapshotDoc& doc = impl.recorded();
  const std::int32_t count = lead_ops(doc);
  const auto found = found_by_step(doc);
  if (count <= 0 || static_cast<std::size_t>(count) > doc.ops.size() || found.empty()) return std::nullopt;
  try {
    const RunScope scope(doc);
    for (const auto& [slot, path] : found) (void)impl.load(path);
    if (is_refuted(impl, OpId{count}, found)) return without_lead(doc, count, found);
  } catch (const std::exception&) {  // a copy of the file without these values
  }
  return std::nullopt;
}

}  // namespace nanquest::trace
