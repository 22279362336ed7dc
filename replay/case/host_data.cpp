#include "replay/case/host_data.h"

#include <optional>

namespace nanquest {
namespace {

/// Whether the memory held the same bytes when `maker` allocated it; nothing if the record has no hash.
std::optional<bool> same_as_handed_out(const Case& c, TensorId row, OpId maker) {
  const SlotId slot = c.graph().slot(row);
  const StatsRow* read = c.graph().stats(row);
  for (const TensorId made : c.graph().written(maker)) {
    const StatsRow* then = made && c.graph().slot(made) == slot ? c.graph().stats(made) : nullptr;
    if (read && then && read->has_hash && then->has_hash) return read->hash == then->hash;
  }
  return std::nullopt;
}

}  // namespace

bool hands_out_unwritten(const Case& c, OpId op) {
  return (c.graph().op(op).flags & kOpUninitialised) != 0;
}

OpId handed_out(const Case& c, SlotId slot, OpId before) {
  OpId found;
  for (const TraceGraph::Write& write : c.graph().writes(slot))
    if (write.op < before && hands_out_unwritten(c, write.op)) found = write.op;
  return found;
}

HostData host_data(const Case& c, OpId host_write) {
  const auto rows = c.graph().written(host_write);
  if (rows.empty() || !rows[0]) return HostData::unknown;
  const SlotId slot = c.graph().slot(rows[0]);
  if (const OpId maker = handed_out(c, slot, host_write))
    if (const auto same = same_as_handed_out(c, rows[0], maker))
      return *same ? HostData::first_read : HostData::numbers;
  for (const TraceGraph::Read& read : c.graph().reads(slot)) {
    if (!(host_write < read.op)) continue;
    const OpRow& reader = c.graph().op(read.op);
    if (plain_name(reader) == "lift_fresh") return HostData::numbers;
    if (!computes_nothing(reader)) return HostData::unknown;
  }
  return HostData::unknown;
}

}  // namespace nanquest
