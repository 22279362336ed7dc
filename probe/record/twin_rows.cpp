#include "probe/record/twin_rows.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "probe/record/rows.h"
#include "probe/trace/origins.h"

namespace nanquest::record {
namespace {

/// `ours` with the twin's bytes in the places that this step reads, `shift` bytes further on than in the
/// twin.
at::Tensor laid_over(const at::Tensor& ours, const at::Tensor& twins, std::int64_t shift) {
  at::Tensor made = ours.contiguous().clone();
  auto* const to = static_cast<std::byte*>(made.mutable_data_ptr());
  const auto* const from = static_cast<const std::byte*>(twins.const_data_ptr());
  const std::int64_t here = std::max<std::int64_t>(shift, 0), there = std::max<std::int64_t>(-shift, 0);
  const std::int64_t count = std::min(static_cast<std::int64_t>(made.nbytes()) - here,
                                      static_cast<std::int64_t>(twins.nbytes()) - there);
  if (count > 0) std::memcpy(to + here, from + there, static_cast<std::size_t>(count));
  return made;
}

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  return a.nbytes() == b.nbytes() && std::memcmp(a.const_data_ptr(), b.const_data_ptr(), a.nbytes()) == 0;
}

/// Whether loss and gradients are computed by the first `ops` ops.
bool covers_harm(const StepRows& ours, std::uint32_t ops) {
  const SnapshotDoc& doc = ours.doc;
  for (std::size_t i = ops; i < ours.ops.size(); ++i)
    if (doc.ops[static_cast<std::size_t>(ours.ops[i])].phase == Phase::backward) return false;
  if (doc.loss == kNone) return true;
  const std::int32_t slot = doc.tensors[static_cast<std::size_t>(doc.loss)].slot;
  if (slot == kNone || static_cast<std::uint32_t>(slot) >= ours.step.slots.size()) return true;
  const std::uint32_t writer = ours.step.slots[static_cast<std::uint32_t>(slot)].writer;
  return writer == UINT32_MAX || writer < ops;
}

/// Sets `value` to the bytes that the twin read in the slot's place; undefined if nothing is to be replaced.
/// False if that is unknown.
bool twin_of_slot(const StepRows& rows, const TwinBatch& twin, const TwinMatch& match, std::uint32_t slot,
                  at::Tensor& value) {
  const TwinMatch::Place& place = match.places[slot];
  const SlotRecord& record = rows.step.slots[slot];
  const SlotOrigin origin = rows.doc.slots[slot].origin;
  if (place.first >= match.ops || place.number || record.first_bytes == 0) return true;
  if (!comes_with_batch(origin)) return place.shift == 0;  // otherwise it is another part of a weight
  const TwinCopy* const copy = twin.value(slot);
  if (!copy) return false;
  const bool same_storage = copy->in(record.storage._unsafe_get_target());
  // Without a name: it is kept from step to step if the steps themselves write it.
  if (origin == SlotOrigin::external && same_storage && (copy->state || record.writer != UINT32_MAX))
    return place.shift == 0;
  const at::Tensor theirs = bytes_of(*copy);
  const at::Tensor& ours = rows.first[slot];
  if (!theirs.defined() || !ours.defined()) return false;
  const bool unchanged = same_bytes(theirs, ours.contiguous().view({-1}).view(at::kByte));
  if (unchanged && place.shift == 0) return true;
  // Filled again between the steps, or state that something else writes: unknown.
  if (origin == SlotOrigin::external && same_storage && !unchanged) return false;
  value = laid_over(ours, theirs, place.shift);
  return true;
}

}  // namespace

std::optional<TwinRows> twin_rows(const StepRows& ours, const TwinBatch& twin) {
  const SnapshotDoc& doc = ours.doc;
  const TwinMatch match = twin.match(ours.step, [&](std::uint32_t op) {
    return doc.ops[static_cast<std::size_t>(ours.ops[op])].phase == Phase::optimizer;
  });
  if (match.ops == 0 || !covers_harm(ours, match.ops)) return std::nullopt;
  TwinRows made{{twin.step(), 0, {}}, {}};
  made.twin.ops =
      match.ops == ours.ops.size() ? static_cast<std::int32_t>(doc.ops.size()) : ours.ops[match.ops];
  const auto add = [&](std::int32_t slot, std::int32_t op, at::Tensor value) {
    std::vector<TwinValue>& values = made.twin.values;
    values.push_back({slot, op, numbered("twin/data/", values.size())});
    made.data.emplace_back(values.back().data, std::move(value));
  };
  for (const std::uint32_t slot : ours.step.outside) {
    at::Tensor value;
    if (!twin_of_slot(ours, twin, match, slot, value)) return std::nullopt;
    if (value.defined()) add(static_cast<std::int32_t>(slot), kNone, std::move(value));
  }
  std::size_t next = 0;
  for (std::size_t op = 0; op < doc.ops.size() && next < match.host_writes; ++op) {
    if (!(doc.ops[op].flags & kOpHostWrite)) continue;
    const HostWrite& write = ours.step.host_writes[next];
    const TwinCopy* const copy = twin.host_write(next++);
    const at::Tensor theirs = copy ? bytes_of(*copy) : at::Tensor();
    if (!theirs.defined() || theirs.nbytes() != write.bytes) return std::nullopt;
    const auto count = static_cast<std::int64_t>(write.bytes / c10::elementSize(write.type));
    at::Tensor value = at::empty({count}, write.type);
    std::memcpy(value.mutable_data_ptr(), theirs.const_data_ptr(), value.nbytes());
    add(kNone, static_cast<std::int32_t>(op), std::move(value));
  }
  return made;
}

}  // namespace nanquest::record
