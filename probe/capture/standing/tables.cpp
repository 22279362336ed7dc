#include "probe/capture/standing/tables.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "probe/capture/first_value.h"
#include "probe/capture/recorder_parts.h"
#include "probe/trace/op_facts.h"

namespace nanquest {
namespace standing {

at::Tensor typed_bytes(const void* data, std::size_t bytes, at::ScalarType type, c10::Storage keep) {
  const std::size_t item = c10::elementSize(type);
  const bool whole = item > 0 && bytes % item == 0;
  const auto options = at::TensorOptions().dtype(whole ? type : at::kByte);
  const auto count = static_cast<std::int64_t>(whole ? bytes / item : bytes);
  if (count == 0) return at::empty({0}, options);
  return at::from_blob(
      const_cast<void*>(data), {count}, [keep = std::move(keep)](void*) {}, options);
}

}  // namespace standing

using standing::SlotRecord;
using standing::Step;

StandingTables::StandingTables(StandingTrace& trace, Step& step) : trace_(trace), step_(step) {}

void StandingTables::announce(const std::string& name, const at::Tensor& tensor, SlotOrigin origin) {
  if (is_plain(tensor)) announce(name, tensor.storage().unsafeGetStorageImpl(), origin);
}

void StandingTables::announce(const std::string& name, const c10::StorageImpl* storage, SlotOrigin origin) {
  names_.emplace(storage, StorageName{origin, name, {}});
}

void StandingTables::build() {
  const at::NoGradGuard no_grad;
  recording.notes = step_.notes;
  add_slots();
  // Ops of several threads don't end in the order in which they begin.
  std::stable_sort(step_.opaque.begin(), step_.opaque.end(),
                   [](const auto& a, const auto& b) { return a.op < b.op; });
  for (std::uint32_t i = 0; i < step_.ops.size(); ++i) add_op(i);
}

void StandingTables::add_slots() {
  for (std::uint32_t i = 0; i < step_.slots.size(); ++i) {
    const SlotRecord& record = step_.slots[i];
    Slot row;
    row.bytes = record.bytes;
    row.dtype = dtype_of(record.type).value_or(DType::uint8);
    row.device = record.device.str();
    first_.emplace_back();
    if (!record.produced) {
      row.origin = SlotOrigin::external;
      if (const auto named = names_.find(record.storage._unsafe_get_target()); named != names_.end()) {
        row.origin = named->second.origin;
        row.name = named->second.name;
      }
      if (record.first_bytes > 0) {
        row.data = numbered("trace/slot_data/", i);
        bool trusted = true;
        first_.back() = first_values(step_, i, trusted);
        const std::string what = row.name.empty() ? "slot " + std::to_string(i) : row.name;
        if (!first_.back().defined()) {
          recording.notes.push_back(
              what + ": its memory was freed before it could be copied, so the step can't be run again");
          first_.back() = at::zeros({static_cast<std::int64_t>(record.first_bytes)}, at::kByte);
        } else if (!trusted) {
          recording.notes.push_back(what +
                                    ": written behind the trace (by another thread, or by the host) after "
                                    "the step had read it, so a replay may differ");
        }
        recording.data.emplace_back(row.data, first_.back());
      }
    }
    recording.doc.slots.push_back(std::move(row));
  }
}

at::Tensor StandingTables::first_values(const Step& step, std::uint32_t slot, bool& trusted) const {
  const SlotRecord& record = step.slots[slot];
  trusted = trusted && !record.changed_unseen;
  if (record.lost) return {};
  if (record.saved) return standing::typed_bytes(record.saved, record.first_bytes, record.type, {});
  if (record.saved_on_device.defined()) return copy_storage(record.saved_on_device.storage(), record.type);
  if (!record.live) return {};
  // A later step may have saved what this one read.
  for (const std::int64_t number : trace_.steps()) {
    const Step* later = trace_.find(number);
    if (!later || later->number <= step.number) continue;
    const std::uint32_t there = later->slots.find(record.live.unsafeGetStorageImpl());
    if (there == standing::SlotIndex::kMissing || later->slots[there].produced || later->slots[there].live)
      continue;
    const at::Tensor saved = first_values(*later, there, trusted);
    if (saved.defined() && saved.is_cpu() && record.device.is_cpu())
      trusted = trusted && saved.nbytes() == record.first_bytes &&
                standing::sampled_checksum(saved.const_data_ptr(), record.first_bytes) == record.checksum;
    return saved;
  }
  if (record.live.nbytes() < record.first_bytes || !record.live.data()) return {};
  trusted = trusted && !standing::changed_since(record);
  if (!record.device.is_cpu()) return copy_storage(record.live, record.type);
  return standing::typed_bytes(record.live.data(), record.first_bytes, record.type, record.live);
}

at::Tensor StandingTables::first_value(const at::Tensor& tensor) const {
  return is_plain(tensor) ? first_value(tensor.storage().unsafeGetStorageImpl()) : at::Tensor{};
}

at::Tensor StandingTables::first_value(const c10::StorageImpl* storage) const {
  const std::uint32_t slot = step_.slots.find(storage);
  if (slot == standing::SlotIndex::kMissing || step_.slots[slot].produced) return {};
  bool trusted = true;
  return first_values(step_, slot, trusted);
}

std::int32_t StandingTables::add_stats(const at::Tensor& tensor) {
  const auto stats = stats_of(tensor, /*hash=*/true);
  if (!stats) return kNone;
  recording.doc.stats.push_back(*stats);
  return static_cast<std::int32_t>(recording.doc.stats.size()) - 1;
}

std::int32_t StandingTables::describe(const at::Tensor& tensor) {
  if (!tensor.defined() || !can_record(tensor)) return kNone;
  const at::NoGradGuard no_grad;
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  auto slot = static_cast<std::int32_t>(step_.slots.find(storage));
  if (slot == kNone) {
    const auto [at, fresh] = more_.emplace(storage, static_cast<std::int32_t>(recording.doc.slots.size()));
    slot = at->second;
    if (fresh) {
      Slot row;
      row.bytes = tensor.storage().nbytes();
      row.dtype = dtype_of(tensor.scalar_type()).value_or(DType::uint8);
      row.device = tensor.device().str();
      row.origin = SlotOrigin::external;
      first_.push_back(copy_storage(tensor));
      if (row.bytes > 0) {
        row.data = numbered("trace/slot_data/", static_cast<std::size_t>(slot));
        recording.data.emplace_back(row.data, first_.back());
      }
      recording.doc.slots.push_back(std::move(row));
    }
  }
  TensorRow row = row_of(tensor, slot);
  row.stats = add_stats(tensor);
  recording.doc.tensors.push_back(std::move(row));
  return static_cast<std::int32_t>(recording.doc.tensors.size()) - 1;
}

NamedTensor StandingTables::keep_first(const std::string& group, const std::string& name,
                                       const at::Tensor& tensor) {
  if (!is_plain(tensor)) return by_name_only(name, tensor);
  return keep_first(group, name, tensor, tensor.storage().unsafeGetStorageImpl());
}

NamedTensor StandingTables::keep_first(const std::string& group, const std::string& name,
                                       const at::Tensor& like, const c10::StorageImpl* storage) {
  const auto slot = static_cast<std::int32_t>(step_.slots.find(storage));
  std::string path = group + "/" + name;
  if (const int used = ++paths_used_[path]; used > 1) path.append("#").append(std::to_string(used));
  return add_first_value(recording, path, name, like, slot,
                         slot == kNone ? at::Tensor{} : first_[static_cast<std::size_t>(slot)]);
}

at::Tensor StandingTables::values_now(std::uint32_t slot) const {
  const SlotRecord& record = step_.slots[slot];
  if (record.written_late || record.forgotten) return {};
  const auto now = [&]() -> at::Tensor {
    const auto alive = record.storage.lock();
    if (!alive) return {};
    const c10::Storage storage(alive);
    if (!storage.device().is_cpu()) return copy_storage(storage, record.type);
    return storage.data() ? standing::typed_bytes(storage.data(), storage.nbytes(), at::kByte, storage)
                          : at::Tensor{};
  };
  if (&step_ == trace_.current()) return now();
  const Step* next = trace_.find(step_.number + 1);
  if (!next || record.produced) return {};
  const std::uint32_t there = next->slots.find(record.storage._unsafe_get_target());
  // The step that runs has not touched it yet.
  if (there == standing::SlotIndex::kMissing && next == trace_.current()) return now();
  if (there == standing::SlotIndex::kMissing || next->slots[there].produced) return {};
  bool trusted = true;
  const at::Tensor values = first_values(*next, there, trusted);
  return values.defined() && trusted ? values.view(at::kByte) : at::Tensor{};
}

void StandingTables::hash_survivors() {
  const at::NoGradGuard no_grad;
  std::vector<std::int32_t> last(step_.slots.size(), kNone);
  for (const OpRow& op : recording.doc.ops)
    for (std::int32_t i = 0; i < op.written_count; ++i) {
      const std::int32_t row = recording.doc.written[static_cast<std::size_t>(op.first_written + i)];
      const std::int32_t output = row - op.first_output;
      const bool scratch =
          output >= 0 && output < op.output_count && is_scratch(op.name, static_cast<std::size_t>(output));
      const bool proves = !scratch && !(op.flags & (kOpUninitialised | kOpHostWrite | kOpOpaque | kOpFailed));
      last[static_cast<std::size_t>(recording.doc.tensors[static_cast<std::size_t>(row)].slot)] =
          proves ? row : kNone;
    }
  for (std::uint32_t slot = 0; slot < last.size(); ++slot) {
    if (last[slot] == kNone) continue;
    const at::Tensor bytes = values_now(slot);
    if (!bytes.defined()) continue;
    TensorRow& row = recording.doc.tensors[static_cast<std::size_t>(last[slot])];
    const at::ScalarType type = scalar_type_of(row.dtype);
    const at::Tensor typed =
        standing::typed_bytes(bytes.const_data_ptr(), bytes.nbytes(), type, bytes.storage());
    if (typed.scalar_type() != type) continue;
    if (!reaches_within(row.sizes, row.strides, row.storage_offset, typed.numel()))
      continue;  // made smaller since
    row.stats = add_stats(typed.as_strided(row.sizes, row.strides, row.storage_offset));
  }
}

void StandingTables::own() {
  for (auto& [path, tensor] : recording.data) tensor = tensor.clone();
}

}  // namespace nanquest
