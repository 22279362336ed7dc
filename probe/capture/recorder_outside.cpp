// TraceRecorder: values that the step reads from outside, and values written behind the dispatcher.
#include <ATen/ATen.h>

#include <algorithm>

#include "probe/capture/first_value.h"
#include "probe/capture/recorder.h"
#include "probe/capture/recorder_parts.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {

NamedTensor TraceRecorder::keep(const std::string& group, const std::string& name, const at::Tensor& tensor,
                                SlotOrigin origin) {
  NamedTensor row = by_name_only(name, tensor);
  row.data = free_path(group + "/" + name);
  if (!is_plain(tensor)) {
    recording_.notes.push_back(row.data + ": not plain memory, kept by name only");
    row.data.clear();
    return row;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor copy =
      tensor.detach().to(at::kCPU, tensor.scalar_type(), false, /*copy=*/true, at::MemoryFormat::Contiguous);
  const bool whole =
      tensor.is_contiguous() && tensor.storage_offset() == 0 &&
      tensor.storage().nbytes() == static_cast<std::size_t>(tensor.numel()) * tensor.element_size();
  recording_.data.emplace_back(row.data, copy);
  slots_.name(tensor, {origin, name, whole ? row.data : std::string{}});
  return row;
}

std::int32_t TraceRecorder::slot_for_argument(const at::Tensor& tensor, bool written) {
  std::int32_t slot = slots_.find(tensor);
  if (slot != kNone) {
    Slot& row = doc_.slots[static_cast<std::size_t>(slot)];
    row.bytes = std::max<std::uint64_t>(row.bytes, tensor.storage().nbytes());
    if (!slots_.state(slot).initialised && !written) add_host_write(tensor, slot);
    if (!written) watch_shared(tensor, slot);
    return slot;
  }
  slot = slots_.add(tensor, /*produced=*/false);
  Slot& row = doc_.slots[static_cast<std::size_t>(slot)];
  if (row.data.empty() && row.bytes > 0) {
    row.data = numbered("trace/slot_data/", static_cast<std::size_t>(slot));
    if (options_.lazy) {
      slots_.state(slot).live = tensor.storage();
    } else {
      recording_.data.emplace_back(row.data, copy_storage(tensor));
    }
  }
  watch_shared(tensor, slot);
  return slot;
}

std::string TraceRecorder::free_path(const std::string& wanted) {
  const int used = ++names_used_[wanted];
  return used == 1 ? wanted : wanted + "#" + std::to_string(used);
}

void TraceRecorder::save_outside(std::int32_t slot) {
  SlotState& state = slots_.state(slot);
  if (!state.live) return;
  const Slot& row = doc_.slots[static_cast<std::size_t>(slot)];
  state.saved = copy_storage(state.live, scalar_type_of(row.dtype));
  state.live = {};
  recording_.data.emplace_back(row.data, state.saved);
}

void TraceRecorder::copy_outside() {
  const std::lock_guard lock(mutex_);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    settle(static_cast<std::int32_t>(i));
    save_outside(static_cast<std::int32_t>(i));
  }
  look_at_unseen();
}

void TraceRecorder::look_at_outside() {
  const std::lock_guard lock(mutex_);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < slots_.size(); ++i) settle(static_cast<std::int32_t>(i));
  look_at_unseen();
}

void TraceRecorder::look_at_unseen() {
  for (const std::int32_t row : unseen_) look_at_first_values(row);
  unseen_.clear();
}

void TraceRecorder::announce(const std::string& name, const at::Tensor& tensor, SlotOrigin origin) {
  if (!is_plain(tensor)) return;
  slots_.name(tensor, {origin, name, {}});
  const std::int32_t slot = slots_.find(tensor);
  if (origin != SlotOrigin::input || slot == kNone) return;
  // The program worked on it before it was known by name: from here on it is what the step was given.
  Slot& row = doc_.slots[static_cast<std::size_t>(slot)];
  if (row.origin == SlotOrigin::produced) {
    slots_.forget(tensor);
  } else if (row.origin == SlotOrigin::external) {
    row.origin = origin;
    row.name = name;
  }
}

NamedTensor TraceRecorder::keep_first(const std::string& group, const std::string& name,
                                      const at::Tensor& tensor) {
  const std::lock_guard lock(mutex_);
  if (!is_plain(tensor)) return by_name_only(name, tensor);
  const std::int32_t slot = slots_.find(tensor);
  const at::Tensor saved = slot == kNone ? at::Tensor{} : slots_.state(slot).saved;
  return add_first_value(recording_, free_path(group + "/" + name), name, tensor, slot, saved);
}

at::Tensor TraceRecorder::first_value(const at::Tensor& tensor) const {
  const std::int32_t slot = is_plain(tensor) ? slots_.find(tensor) : kNone;
  if (slot == kNone) return {};
  const SlotState& state = slots_.state(slot);
  return state.live ? tensor : state.saved;
}

void TraceRecorder::add_host_write(const at::Tensor& tensor, std::int32_t slot) {
  SlotState& state = slots_.state(slot);
  state.initialised = true;
  ++state.generation;
  OpRow op;
  op.name = "nanquest::host_write";
  op.flags = kOpHostWrite;
  op.phase = current_phase();
  op.first_arg = static_cast<std::int32_t>(doc_.args.size());
  op.host_data = numbered("trace/host_writes/", doc_.ops.size());
  const at::Tensor bytes = copy_storage(tensor);
  recording_.data.emplace_back(op.host_data, bytes);
  // The row spans the whole storage, whatever view was being read when it was noticed.
  TensorRow row;
  row.slot = slot;
  row.dtype = dtype_of(bytes.scalar_type()).value_or(DType::uint8);
  row.sizes = {bytes.numel()};
  row.strides = {1};
  if (const auto stats = stats_of(bytes, options_.hash)) {
    row.stats = static_cast<std::int32_t>(doc_.stats.size());
    doc_.stats.push_back(*stats);
  }
  op.first_output = static_cast<std::int32_t>(doc_.tensors.size());
  op.output_count = 1;
  doc_.tensors.push_back(std::move(row));
  op.first_written = static_cast<std::int32_t>(doc_.written.size());
  op.written_count = 1;
  doc_.written.push_back(op.first_output);
  doc_.ops.push_back(std::move(op));
  stacks_.push_back(nullptr);
}

}  // namespace nanquest
