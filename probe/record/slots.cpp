#include "probe/record/slots.h"

#include <algorithm>
#include <cstring>

#include "probe/numerics/hash.h"

namespace nanquest::record {

std::uint64_t hash_of_samples(const void* data, std::size_t bytes, std::size_t samples) {
  constexpr std::size_t kMost = 1024;
  std::uint64_t read[kMost + 1] = {};
  if (!data || bytes < sizeof(std::uint64_t)) return bytes;
  samples = std::clamp<std::size_t>(samples, 2, kMost);
  const std::size_t last = bytes - sizeof(std::uint64_t);
  for (std::size_t i = 0; i < samples; ++i)
    std::memcpy(&read[i], static_cast<const std::byte*>(data) + last / (samples - 1) * i, sizeof read[i]);
  std::memcpy(&read[samples], static_cast<const std::byte*>(data) + last, sizeof read[samples]);
  return hash_bytes(read, (samples + 1) * sizeof read[0]);
}

bool changed_since(const SlotRecord& record) {
  if (record.version.enabled() && record.version.current_version() != record.version_then) return true;
  if (!record.device.is_cpu() || !record.live.data() || record.live.nbytes() < record.first_bytes)
    return false;
  return hash_of_samples(record.live.data(), record.first_bytes) != record.checksum;
}

std::uint32_t SlotIndex::find(const c10::StorageImpl* storage) const {
  if (places_.empty()) return kMissing;
  const std::size_t mask = places_.size() - 1;
  for (std::size_t i = start(storage);; i = (i + 1) & mask) {
    const Place& place = places_[i];
    if (place.stamp != stamp_) return kMissing;
    if (place.storage == storage) return place.slot;
  }
}

void SlotIndex::insert(const c10::StorageImpl* storage, std::uint32_t slot) {
  const std::size_t mask = places_.size() - 1;
  std::size_t i = start(storage);
  while (places_[i].stamp == stamp_ && places_[i].storage != storage) i = (i + 1) & mask;
  places_[i] = {storage, stamp_, slot};
}

void SlotIndex::grow() {
  const std::size_t places = std::max<std::size_t>(1024, places_.size() * 2);
  places_.assign(places, Place{nullptr, 0, 0});
  shift_ = 64;
  for (std::size_t n = places; n > 1; n /= 2) --shift_;
  stamp_ = 1;
  for (std::uint32_t slot = 0; slot < size_; ++slot)
    if (const auto* storage = records_[slot].storage._unsafe_get_target();
        storage && !records_[slot].forgotten)
      insert(storage, slot);
}

std::uint32_t SlotIndex::add(SlotRecord record) {
  if ((size_ + 1) * 2 > places_.size()) grow();
  if (size_ == records_.size()) records_.emplace_back();
  const c10::StorageImpl* const storage = record.storage._unsafe_get_target();
  records_[size_] = std::move(record);
  if (storage) insert(storage, size_);
  return size_++;
}

std::uint32_t SlotIndex::add(const at::Tensor& tensor, bool produced) {
  if ((size_ + 1) * 2 > places_.size()) grow();
  if (size_ == records_.size()) records_.emplace_back();
  const c10::Storage& storage = tensor.storage();
  SlotRecord& record = records_[size_];
  record.storage = storage.getWeakStorageImpl();
  record.bytes = record.first_bytes = storage.nbytes();
  record.type = tensor.scalar_type();
  record.device = tensor.device();
  record.produced = produced;
  record.writer = UINT32_MAX;
  record.initialised = true;
  record.read = record.unread = record.lost = record.changed_unseen = record.written_late = record.put_back =
      record.forgotten = record.shared = record.late = record.of_model = false;
  record.saved = nullptr;
  insert(storage.unsafeGetStorageImpl(), size_);
  return size_++;
}

void SlotIndex::forget(const c10::StorageImpl* storage) {
  if (places_.empty()) return;
  const std::size_t mask = places_.size() - 1;
  for (std::size_t i = start(storage); places_[i].stamp == stamp_; i = (i + 1) & mask) {
    if (places_[i].storage != storage) continue;
    if (places_[i].slot != kMissing) records_[places_[i].slot].forgotten = true;
    places_[i].slot = kMissing;
    return;
  }
}

void SlotIndex::clear() {
  const c10::weak_intrusive_ptr<c10::StorageImpl> none{c10::intrusive_ptr<c10::StorageImpl>()};
  for (std::uint32_t slot = 0; slot < size_; ++slot) {
    SlotRecord& record = records_[slot];
    record.storage = none;
    record.live = {};
    record.version = {};
    if (record.saved_on_device.defined()) record.saved_on_device.reset();
  }
  size_ = 0;
  if (++stamp_ == 0) {
    std::fill(places_.begin(), places_.end(), Place{nullptr, 0, 0});
    stamp_ = 1;
  }
}

void SlotIndex::forget_produced(std::uint32_t kept_from) {
  const c10::weak_intrusive_ptr<c10::StorageImpl> none{c10::intrusive_ptr<c10::StorageImpl>()};
  for (std::uint32_t slot = 0; slot < size_; ++slot)
    if (const SlotRecord& record = records_[slot];
        record.produced && (record.writer == UINT32_MAX || record.writer < kept_from))
      records_[slot].storage = none;
}

}  // namespace nanquest::record
