#include "replay/case/host_data.h"

#include <ATen/ATen.h>

#include <limits>
#include <optional>

#include "probe/trace/host_writes.h"
#include "probe/trace/op_numbers.h"
#include "replay/case/values.h"

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

/// What was there, as far as the fill of deterministic mode can be seen in it.
std::optional<at::Tensor> bytes_with_fill(const Case& c, OpId host_write) {
  std::optional<at::Tensor> bytes = c.read(c.graph().op(host_write).host_data);
  const bool fits = bytes && bytes->is_floating_point() && bytes->element_size() > 1 && bytes->numel() > 0;
  return fits ? bytes : std::nullopt;
}

/// Whether all that was there is the fill of deterministic mode.
bool holds_fill(const Case& c, OpId host_write) {
  const auto bytes = bytes_with_fill(c, host_write);
  return bytes && is_fill(*bytes).all().item<bool>();
}

/// The step ran in deterministic mode, and all that was bad there may be left of its fill.
bool keeps_fill(const Case& c, OpId host_write) {
  const auto& environment = c.doc().environment;
  const auto mode = environment.find("deterministic_algorithms");
  if (mode == environment.end() || mode->second != "true") return false;
  const auto bytes = bytes_with_fill(c, host_write);
  if (!bytes) return false;
  const at::Tensor bad = bad_mask(*bytes);
  return bad.any().item<bool>() && !at::logical_and(bad, at::logical_not(is_fill(*bytes))).any().item<bool>();
}

/// PyTorch made it, or what it was first copied to (another device), of numbers of Python: a reader says so.
bool is_lifted(const Case& c, SlotId slot, OpId after, bool copied = false) {
  for (const TraceGraph::Read& read : c.graph().reads(slot)) {
    if (!(after < read.op)) continue;
    const OpRow& reader = c.graph().op(read.op);
    if (plain_name(reader) == "lift_fresh") return true;
    if (!copied && plain_name(reader) == "_to_copy")
      for (const TensorId made : c.graph().written(read.op)) {
        const SlotId there = c.graph().slot(made);
        if (there && is_lifted(c, there, read.op, true)) return true;
      }
    if (!computes_nothing(reader)) return false;
  }
  return false;
}

/// The same where the call comes before the op that noticed the write: it looks at no element.
bool is_lifted_between(const Case& c, SlotId slot, OpId maker, OpId host_write) {
  for (std::int32_t row = maker.row() + 1; row < host_write.row(); ++row) {
    if (plain_name(*c.row(row)) != "lift_fresh") continue;
    for (const TraceGraph::Argument& argument : c.graph().arguments(OpId{row}))
      if (c.graph().slot(argument.row) == slot) return true;
  }
  return false;
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
  if (is_lifted(c, slot, host_write)) return HostData::numbers;
  if (!maker) return HostData::unknown;
  if (is_lifted_between(c, slot, maker, host_write)) return HostData::numbers;
  const auto same = same_as_handed_out(c, rows[0], maker);
  if (same && !*same) return keeps_fill(c, host_write) ? HostData::open : HostData::numbers;
  const bool fill = holds_fill(c, host_write);
  if (fill && c.graph().op(host_write).overload == kSharedWrite) return HostData::open;
  return same || fill ? HostData::first_read : HostData::unknown;
}

}  // namespace nanquest
