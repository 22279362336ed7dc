#include "probe/record/early_copies.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace nanquest::record {
namespace {

c10::Stream stream_of(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

/// Work of another stream may not have arrived there yet.
bool EarlyCopies::Memory::untouched() const {
  return version.current_version() == version_then && stream == stream_of(stream.device());
}

void EarlyCopies::begin_step() {
  // A step that overwrote nothing tells nothing about the next one.
  if (!now_.empty()) before_ = std::exchange(now_, {});
  for (Memory& memory : before_) {
    memory.version_then = memory.version.current_version();
    memory.copy.reset();
  }
  now_.clear();
  next_ = 0;
  begun_ = false;
}

EarlyCopies::Memory* EarlyCopies::find(const c10::StorageImpl* storage) {
  for (std::size_t looked = 0; looked < before_.size(); ++looked) {
    Memory& memory = before_[next_ % before_.size()];
    ++next_;
    if (memory.storage._unsafe_get_target() == storage) return &memory;
  }
  return nullptr;
}

at::Tensor EarlyCopies::of(const SlotRecord& record, DeviceCopies& copies) {
  if (record.version.enabled())
    now_.push_back({record.live.getWeakStorageImpl(), record.version, stream_of(record.device), 0, {}});
  Memory* const mine = find(record.live.unsafeGetStorageImpl());
  if (mine && mine->copy.defined() && mine->untouched() && mine->copy.nbytes() == record.live.nbytes())
    return std::exchange(mine->copy, {});
  at::Tensor copy = copies.of(record.live);
  if (begun_ || !mine) return copy;  // not there in the last step: the turn of another optimizer, say
  begun_ = true;
  for (Memory& memory : before_) {
    if (&memory == mine || !memory.untouched()) continue;
    if (const auto living = memory.storage.lock()) memory.copy = copies.of(c10::Storage(living));
  }
  return copy;
}

}  // namespace nanquest::record
