#include "replay/case/host_data.h"

#include <ATen/ATen.h>

#include <limits>
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

/// Whether all that was there is the fill of deterministic mode.
bool holds_fill(const Case& c, OpId host_write) {
  const std::optional<at::Tensor> bytes = c.read(c.graph().op(host_write).host_data);
  const bool fits = bytes && bytes->is_floating_point() && bytes->element_size() > 1 && bytes->numel() > 0;
  return fits && is_fill(*bytes).all().item<bool>();
}

}  // namespace

at::Tensor is_fill(const at::Tensor& t) {
  const at::Tensor fill = at::full({1}, std::numeric_limits<double>::quiet_NaN(), t.options());
  const auto bits = t.element_size() == 4 ? at::kInt : t.element_size() == 8 ? at::kLong : at::kShort;
  return t.contiguous().view(bits) == fill.view(bits);
}

bool hands_out_unwritten(const Case& c, OpId op) {
  return (c.graph().op(op).flags & kOpUninitialised) != 0;
}

std::string rows_text(const at::Tensor& mask) {
  if (mask.dim() == 0) return "";
  const at::Tensor any = mask.dim() > 1 ? mask.flatten(1).any(1) : mask,
                   all = mask.dim() > 1 ? mask.flatten(1).all(1) : mask;
  if (!at::equal(any, all)) return "";
  const at::Tensor rows = any.nonzero().flatten();
  const auto first = rows[0].item<std::int64_t>(), last = rows[-1].item<std::int64_t>();
  if (last - first + 1 != rows.numel()) return std::to_string(rows.numel()) + " rows";
  return first == last ? "row " + std::to_string(first)
                       : "rows " + std::to_string(first) + " to " + std::to_string(last);
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
  const OpId maker = handed_out(c, slot, host_write);
  if (maker)
    if (const auto same = same_as_handed_out(c, rows[0], maker))
      return *same ? HostData::first_read : HostData::numbers;
  for (const TraceGraph::Read& read : c.graph().reads(slot)) {
    if (!(host_write < read.op)) continue;
    const OpRow& reader = c.graph().op(read.op);
    if (plain_name(reader) == "lift_fresh") return HostData::numbers;
    if (!computes_nothing(reader)) break;
  }
  return maker && holds_fill(c, host_write) ? HostData::first_read : HostData::unknown;
}

}  // namespace nanquest
