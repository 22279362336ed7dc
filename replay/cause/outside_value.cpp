#include "replay/cause/outside_value.h"

#include <ATen/ATen.h>

#include <vector>

#include "probe/tensor/tensor_scan.h"
#include "replay/case/host_data.h"
#include "replay/case/values.h"
#include "replay/verdict/words.h"

namespace nanquest {
namespace {

/// How the culprit reads the storage, or whatever reads it first; none if nothing does.
TensorId read_as(const Case& c, SlotId slot) {
  if (c.op())
    for (const TensorId row : c.graph().reads(OpId{c.op_index()}))
      if (c.graph().slot(row) == slot) return row;
  const auto& reads = c.graph().reads(slot);
  return reads.empty() ? TensorId{} : reads.front().row;
}

/// A storage in the format and shape in which it is read, so that its samples can be distinguished; unchanged
/// if that shape doesn't show all of it. Codes that NumPy made as integers may be read as numbers of 8 bits.
at::Tensor as_read(const Case& c, SlotId slot, const at::Tensor& bytes) {
  const TensorId read = read_as(c, slot);
  if (!read) return bytes;
  const TensorRow& row = c.graph().tensor(read);
  std::int64_t elements = 1;
  for (const std::int64_t n : row.sizes) elements *= n;
  at::Tensor flat = bytes.contiguous().view({-1});
  if (elements != flat.numel() || row.storage_offset != 0 ||
      static_cast<std::int64_t>(dtype_size(row.dtype)) != flat.element_size())
    return bytes;
  if (!can_be_bad(flat)) flat = flat.view(scalar_type_of(row.dtype));
  return flat.as_strided(row.sizes, row.strides);
}

/// The usual name of the group that a value of this origin belongs to.
const char* group_of(const std::string& origin) {
  if (origin == "input") return "batch";
  if (origin == "buffer") return "buffers";
  if (origin == "optimizer_state") return "optimizer state";
  return origin == "gradient" ? "gradients" : "parameters";
}

/// Numbers that the program put into new memory while the step ran, and that the culprit read.
std::optional<OutsideValue> filled_by_program(const Case& c) {
  const OpId op{c.op_index()};
  if (!op || c.culprit().origin != word(Origin::input)) return std::nullopt;
  for (const TraceGraph::Argument& a : c.graph().arguments(op)) {
    const OpId writer = a.row ? c.graph().producer(a.row, op) : OpId{};
    if (!writer || !(c.graph().op(writer).flags & kOpHostWrite)) continue;
    if (const HostData data = host_data(c, writer); data != HostData::numbers && data != HostData::open)
      continue;
    const auto bytes = c.read(c.graph().op(writer).host_data);
    if (!bytes || !can_be_bad(*bytes)) continue;
    const SlotId slot = c.graph().slot(a.row);
    const at::Tensor tensor = as_reals(as_read(c, slot, *bytes));
    if (const std::int64_t bad = count_true(bad_mask(tensor)); bad > 0)
      return OutsideValue{c.culprit().tensor_name, "batch", slot.row(), writer.row(), tensor, bad};
  }
  return std::nullopt;
}

}  // namespace

std::optional<OutsideValue> outside_value(const Case& c) {
  const SnapshotDoc& doc = c.doc();
  const std::pair<const char*, const std::vector<NamedTensor>*> groups[] = {
      {"batch", &doc.batch},
      {"parameters", &doc.parameters},
      {"buffers", &doc.buffers},
      {"optimizer state", &doc.optimizer}};
  for (const auto& [group, tensors] : groups)
    for (const NamedTensor& t : *tensors) {
      if (t.name != c.culprit().tensor_name || t.data.empty()) continue;
      const auto tensor = c.read(t.data);
      if (!tensor || !can_be_bad(*tensor)) continue;
      const at::Tensor values = as_reals(*tensor);
      const std::int64_t bad = count_true(bad_mask(values));
      if (bad > 0) return OutsideValue{t.name, group, t.slot, kNone, values, bad};
    }
  // A value without an entry of its own in the file is there as the bytes of its storage. Several may be
  // named alike: what the culprit itself reads comes first.
  std::vector<std::size_t> slots;
  if (c.op())
    for (const TensorId row : c.graph().reads(OpId{c.op_index()}))
      if (const SlotId slot = c.graph().slot(row)) slots.push_back(slot.index());
  for (std::size_t i = 0; i < doc.slots.size(); ++i) slots.push_back(i);
  for (const std::size_t i : slots) {
    if (c.culprit().tensor_name.empty()) break;
    const Slot& slot = doc.slots[i];
    if (slot.origin == SlotOrigin::produced || slot.data.empty() || slot.name != c.culprit().tensor_name)
      continue;
    const auto bytes = c.read(slot.data);
    if (!bytes) continue;
    const at::Tensor tensor = as_reals(as_read(c, SlotId{i}, *bytes));
    if (!can_be_bad(tensor)) continue;
    if (const std::int64_t bad = count_true(bad_mask(tensor)); bad > 0)
      return OutsideValue{
          slot.name, group_of(c.culprit().origin), static_cast<std::int32_t>(i), kNone, tensor, bad};
  }
  return filled_by_program(c);
}

std::string bad_text(const at::Tensor& tensor) {
  const at::Tensor w = wide(tensor);
  const std::int64_t nan = count_true(at::isnan(w)), inf = count_true(at::isinf(w));
  std::string text;
  if (nan > 0) text += std::to_string(nan) + " NaN";
  if (inf > 0) text += (text.empty() ? "" : ", ") + std::to_string(inf) + " Inf";
  return (text.empty() ? "0 bad" : text) + " of " + std::to_string(tensor.numel()) + " elements";
}

}  // namespace nanquest
