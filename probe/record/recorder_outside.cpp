// Recorder: values that a step reads from outside, and values that are written without an op.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "probe/observe/step_scope.h"
#include "probe/record/recorder.h"
#include "probe/record/rows.h"
#include "probe/record/timed.h"
#include "probe/record/tokens.h"
#include "probe/record/unrepeatable.h"
#include "probe/tensor/each_tensor.h"
#include "probe/tensor/parallel.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/op_facts.h"

namespace nanquest {

using record::HostWrite;
using record::SlotRecord;

namespace {

/// Memory that LibTorch did not allocate may be written without an op. So may LibTorch's own (through numpy);
/// it is checked at each read where values are `watched` anyway. Weights are not checked: they are only read,
/// and there are many of them.
bool may_be_shared(const at::Tensor& tensor, bool watched) {
  const c10::Storage& storage = tensor.storage();
  return (watched || !storage.resizable()) && storage.device().is_cpu() &&
         storage.nbytes() <= kMaxSharedBytes && storage.data() && !tensor.requires_grad();
}

/// Whether shared memory holds other bytes than when the trace last saw it.
bool written_by_others(SlotRecord& record, const c10::Storage& storage) {
  if (!record.shared || !storage.data()) return false;
  const std::uint64_t before = std::exchange(record.shared_hash, hash_of_storage(storage));
  return before != record.shared_hash;
}

}  // namespace

void Recorder::add_host_write(const at::Tensor& tensor, std::uint32_t slot) {
  record::Step& step = *into_;
  const c10::Storage& storage = tensor.storage();
  SlotRecord& record = step.slots[slot];
  record.initialised = true;
  // NumPy has a view of it. What it writes later shows only in the bytes.
  if (record.produced && !record.shared && may_be_shared(tensor, /*watched=*/false)) {
    record.shared = true;
    record.shared_hash = hash_of_storage(storage);
  }
  HostWrite write{slot, tensor.scalar_type(), current_phase(), storage.nbytes(), nullptr, {}};
  if (storage.device().is_cpu()) {
    std::byte* copy = step.values.take(write.bytes);
    std::memcpy(copy, storage.data(), write.bytes);
    write.data = copy;
  } else {
    write.on_device = copy_storage(storage, tensor.scalar_type());
  }
  step.host_writes.push_back(std::move(write));
}

std::uint32_t Recorder::outside_or_known(const at::Tensor& tensor, bool blind, bool awaits,
                                         bool& host_write) {
  record::Step& step = *into_;
  const c10::Storage& storage = tensor.storage();
  std::uint32_t slot = step.slots.find(storage.unsafeGetStorageImpl());
  if (slot != record::SlotIndex::kMissing && step.slots[slot].put_back) {
    // What is there now may not be what the step's ops wrote: from here on it comes from outside.
    step.slots.forget(storage.unsafeGetStorageImpl());
    slot = record::SlotIndex::kMissing;
  }
  if (slot != record::SlotIndex::kMissing) {
    SlotRecord& record = step.slots[slot];
    record.bytes = std::max<std::uint64_t>(record.bytes, storage.nbytes());
    if (awaits) return slot;  // it reads nothing yet
    if (record.late) {
      settle(step, slot);
      if (record.shared) record.shared_hash = hash_of_storage(storage);
    }
    if (!blind && (!record.initialised || written_by_others(record, storage))) {
      host_write = true;
      add_host_write(tensor, slot);
    }
    return slot;
  }
  slot = step.slots.add(tensor, /*produced=*/false);
  step.outside.push_back(slot);
  SlotRecord& record = step.slots[slot];
  if (record.first_bytes == 0) return slot;
  if (tape_) tape_->read(tensor, record);
  if (into_ != current_ && !leads_.running()) return slot;  // the tape has read it
  record.shared = may_be_shared(tensor, step.watch != nullptr);
  if (record.shared) record.shared_hash = hash_of_storage(storage);
  if (storage.device().is_cpu() && (record.first_bytes <= record::kCopyAtOnce || record.shared)) {
    std::byte* copy = step.values.take(record.first_bytes);
    std::memcpy(copy, storage.data(), record.first_bytes);
    record.saved = copy;
    return slot;
  }
  record.live = storage;
  step.held += record.first_bytes;
  if (!tensor.is_inference()) {
    record.version = tensor.unsafeGetTensorImpl()->version_counter();
    record.version_then = record.version.current_version();
  }
  if (storage.device().is_cpu())
    record.checksum = record::hash_of_samples(storage.data(), record.first_bytes);
  return slot;
}

/// Memory that is only handed from step to step (FSDP's, for gathered weights) is viewed, and filled before
/// it is read.
bool Recorder::overwrites_unread(const OpTraits& op, const at::Tensor& tensor, std::uint32_t slot) {
  record::Step& step = *into_;
  SlotRecord& record = step.slots[slot];
  if (!record.live || record.read || step.watch || tape_ || op.uninitialised ||
      changes_metadata_only(op.name) || op.gives_what_it_wrote || !tensor.is_contiguous() ||
      tensor.storage_offset() != 0 || tensor.nbytes() != record.live.nbytes() ||
      tensor.nbytes() < record.first_bytes)
    return false;
  // An earlier step may have read it and needs what this one overwrites.
  for (const std::int64_t number : steps()) {
    record::Step* before = find(number);
    if (!before || before == &step) continue;
    const std::uint32_t there = before->slots.find(record.live.unsafeGetStorageImpl());
    if (there != record::SlotIndex::kMissing && before->slots[there].live) return false;
  }
  record.unread = true;
  record.live = {};
  record.version = {};
  return true;
}

void Recorder::about_to_write(record::Step& step, std::uint32_t slot) {
  SlotRecord& record = step.slots[slot];
  if (!record.live) return;
  if (leads_.running() && &step == into_) {
    record.lost = true;
    record.live = {};
    record.version = {};
    return;
  }
  const std::uint64_t grown = step.values.grown();
  const record::Timed timed(updating_ ? &update_cost_.copying : nullptr);
  record.changed_unseen = record::changed_since(record);
  if (!record.device.is_cpu()) {
    record.saved_on_device = &step == current_ && recording_ && into_ == current_
                                 ? (updating_ ? early_in_update_ : early_copies_).of(record, device_copies_)
                                 : device_copies_.of(record.live);
    if (step.watch) copy_overwritten();  // looks at each argument as soon as it is recorded
  } else if (record.live.nbytes() >= record.first_bytes && record.live.data()) {
    std::byte* copy = step.values.take(record.first_bytes);
    parallel_copy(copy, record.live.data(), record.first_bytes);
    record.saved = copy;
  } else {
    record.lost = true;
  }
  if (updating_) {
    update_cost_.bytes += record.first_bytes;
    update_cost_.grew = update_cost_.grew || step.values.grown() != grown;
  }
  record.live = {};
  record.version = {};
}

void Recorder::copy_overwritten() {
  if (device_copies_.none()) return;
  const record::Timed timed(updating_ ? &update_cost_.copying : nullptr);
  device_copies_.make();
}

void Recorder::late_write(const OpTraits& op, c10::ArrayRef<const c10::IValue> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!op.argument_written[i]) continue;
    each_tensor(inputs[i], [&](const at::Tensor& t) {
      if (!t.defined() || !can_record(t)) return;
      call_in(t.storage().unsafeGetStorageImpl());
      if (!current_ || !current_->usable) return;
      const std::uint32_t slot = current_->slots.find(t.storage().unsafeGetStorageImpl());
      if (slot == record::SlotIndex::kMissing) return;
      about_to_write(*current_, slot);
      current_->slots[slot].written_late = true;
    });
  }
  copy_overwritten();
}

}  // namespace nanquest
