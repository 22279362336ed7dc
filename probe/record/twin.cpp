#include "probe/record/twin.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "probe/record/device_copies.h"
#include "probe/record/memory_views.h"
#include "probe/tensor/parallel.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest::record {
namespace {

/// Memory of `bytes`; earlier content may be lost.
std::byte* room_for(TwinCopy& copy, std::size_t bytes) {
  if (copy.capacity < bytes) {
    copy.room.reset();
    copy.capacity = 0;
    copy.room.reset(new std::byte[bytes]);
    copy.capacity = bytes;
  }
  return copy.room.get();
}

void give_back(TwinCopy& copy) {
  copy.known = copy.counted = false;
  copy.room.reset();
  copy.capacity = 0;
  if (copy.on_device.defined()) copy.on_device.reset();
}

void copy_from_host(TwinCopy& copy, const void* from, std::size_t bytes) {
  if (copy.on_device.defined()) copy.on_device.reset();
  std::byte* const to = room_for(copy, bytes);
  if (bytes >= kWorthWaking)
    parallel_copy(to, from, bytes);
  else
    std::memcpy(to, from, bytes);
  copy.bytes = bytes;
  copy.known = true;
}

void copy_on_device(TwinCopy& copy, const c10::Storage& from, std::size_t bytes, DeviceCopies& copies) {
  if (copy.on_device.defined()) copy.on_device.reset();  // its memory may be taken again
  copy.on_device = copies.of(from);
  copy.bytes = bytes;
  copy.known = true;
}

bool same_as_copied(const TwinCopy& copy, const SlotRecord& slot) {
  return copy.known && copy.counted && slot.live && slot.device.is_cpu() && copy.bytes == slot.first_bytes &&
         slot.version.enabled() && copy.version == slot.version_then && copy.checksum == slot.checksum;
}

void copy_first_value(TwinCopy& copy, const SlotRecord& slot, DeviceCopies& copies) {
  const bool same_storage = copy.in(slot.storage._unsafe_get_target());
  if (same_storage && same_as_copied(copy, slot) && !changed_since(slot)) return;
  copy.known = copy.counted = false;
  if (slot.lost || slot.changed_unseen) return;
  if (slot.saved) return copy_from_host(copy, slot.saved, slot.first_bytes);
  if (slot.saved_on_device.defined())
    return copy_on_device(copy, slot.saved_on_device.storage(), slot.first_bytes, copies);
  if (!slot.live || slot.live.nbytes() < slot.first_bytes || changed_since(slot)) return;
  if (!slot.device.is_cpu()) return copy_on_device(copy, slot.live, slot.first_bytes, copies);
  if (!slot.live.data()) return;
  copy_from_host(copy, slot.live.data(), slot.first_bytes);
  copy.version = slot.version_then;
  copy.checksum = slot.checksum;
  copy.counted = slot.version.enabled();
}

}  // namespace

bool TwinBatch::keep(Step& step, std::int64_t number, const TwinNames& names) {
  round_ = -1;
  std::uint64_t bytes = 0;
  for (const HostWrite& write : step.host_writes) bytes += write.bytes;
  if (values_.size() < step.outside.size()) values_.resize(step.outside.size());
  for (std::size_t i = 0; i < step.outside.size(); ++i) {
    const SlotRecord& slot = step.slots[step.outside[i]];
    const c10::StorageImpl* const storage = slot.storage._unsafe_get_target();
    TwinCopy& copy = values_[i];
    const bool lives_on = copy.in(storage) && slot.writer != UINT32_MAX;
    copy.state = names.state.count(storage) > 0 || (lives_on && names.batch.count(storage) == 0);
    if (!copy.state) bytes += slot.first_bytes;
  }
  if (bytes > kTwinBytes || held_ > 2 * kTwinBytes) {
    forget();
    // At the next step, state without a name is known by its memory, and may leave room for the rest.
    for (std::size_t i = 0; i < step.outside.size(); ++i)
      values_[i].storage = step.slots[step.outside[i]].storage;
    return false;
  }
  held_ = 0;
  DeviceCopies on_devices;
  const auto holds = [&](const TwinCopy& copy) {
    held_ += sizeof copy + copy.capacity + (copy.on_device.defined() ? copy.on_device.nbytes() : 0);
  };
  for (std::size_t i = 0; i < step.outside.size(); ++i) {
    const SlotRecord& slot = step.slots[step.outside[i]];
    TwinCopy& copy = values_[i];
    if (copy.state)
      give_back(copy);
    else
      copy_first_value(copy, slot, on_devices);
    if (!copy.in(slot.storage._unsafe_get_target())) copy.storage = slot.storage;
    holds(copy);
  }
  if (hosts_.size() < step.host_writes.size()) hosts_.resize(step.host_writes.size());
  for (std::size_t i = 0; i < step.host_writes.size(); ++i) {
    const HostWrite& write = step.host_writes[i];
    hosts_[i].known = false;
    if (write.data)
      copy_from_host(hosts_[i], write.data, write.bytes);
    else if (write.on_device.defined())
      copy_from_host(hosts_[i], write.on_device.const_data_ptr(), write.on_device.nbytes());
    holds(hosts_[i]);
  }
  on_devices.make();  // in one launch, for which nothing waits
  slots_ = step.outside;
  host_writes_ = step.host_writes.size();
  op_count_ = static_cast<std::uint32_t>(step.ops.size());
  owner_ = &step;
  round_ = step.number;
  number_ = number;
  return true;
}

void TwinBatch::forget() {
  round_ = number_ = -1;
  owner_ = nullptr;
  op_count_ = 0;
  host_writes_ = held_ = 0;
  slots_.clear();
  for (auto* copies : {&values_, &hosts_})
    for (TwinCopy& copy : *copies) give_back(copy);
}

void TwinBatch::take_records(Step& step) {
  if (owner_ != &step) return;
  std::swap(own_ops_, step.ops);
  std::swap(own_words_, step.words);
  owner_ = nullptr;
}

const TwinCopy* TwinBatch::value(std::uint32_t slot) const {
  const auto found = std::lower_bound(slots_.begin(), slots_.end(), slot);
  if (found == slots_.end() || *found != slot) return nullptr;
  return &values_[static_cast<std::size_t>(found - slots_.begin())];
}

at::Tensor bytes_of(const TwinCopy& copy) {
  if (!copy.known) return {};
  if (copy.on_device.defined())
    return copy_storage(copy.on_device.storage(), at::kByte)
        .narrow(0, 0, static_cast<std::int64_t>(copy.bytes));
  return typed_bytes(copy.room.get(), copy.bytes, at::kByte, {});
}

}  // namespace nanquest::record
