// TraceRecorder: values of ops that perhaps can't be run again, and of collectives, which write when they
// have returned.
#include <ATen/ATen.h>

#include <utility>

#include "probe/capture/recorder.h"
#include "probe/capture/recorder_parts.h"
#include "probe/numerics/scan.h"
#include "probe/tensor/tensor_scan.h"

namespace nanquest {
namespace {

/// The row as a tensor over `storage`; undefined if that has become too small.
at::Tensor view_of(const TensorRow& row, const c10::Storage& storage) {
  std::int64_t last = row.storage_offset;
  bool empty = false;
  for (std::size_t d = 0; d < row.sizes.size(); ++d) {
    empty = empty || row.sizes[d] == 0;
    if (row.sizes[d] > 0) last += (row.sizes[d] - 1) * row.strides[d];
  }
  const auto end = empty ? 0 : static_cast<std::size_t>(last + 1) * dtype_size(row.dtype);
  if (!storage || storage.nbytes() < end) return {};
  const auto options = at::TensorOptions().dtype(scalar_type_of(row.dtype)).device(storage.device());
  return at::empty({0}, options).set_(storage, row.storage_offset, row.sizes, row.strides);
}

}  // namespace

std::uint64_t hash_of_storage(const c10::Storage& storage) {
  return hash_bytes(storage.data(), storage.nbytes());
}

void TraceRecorder::write(const OpTraits& traits, OpRow& op, std::int32_t index, const std::string& name,
                          const at::Tensor& tensor, std::int32_t slot, std::int32_t row) {
  slots_.state(slot).writer = index;
  if (!traits.collective) {
    add_written(op, tensor, slot, row);
    return;
  }
  SlotState& state = slots_.state(slot);
  ++state.generation;
  state.initialised = true;
  state.late.push_back({index, row, opaque_path(index, name)});
  state.late_storage = tensor.storage();
  doc_.written.push_back(row);
  ++op.written_count;
  if (op.host_data.empty()) op.host_data = state.late.back().path;
}

void TraceRecorder::keep_value(OpRow& op, const std::string& path, const at::Tensor& tensor) {
  recording_.data.emplace_back(path,
                               tensor.detach().to(at::kCPU, tensor.scalar_type(), false, true).contiguous());
  if (op.host_data.empty()) op.host_data = path;
}

void TraceRecorder::settle(std::int32_t slot) {
  SlotState& state = slots_.state(slot);
  if (state.late.empty()) return;
  const auto late = std::exchange(state.late, {});
  const c10::Storage storage = std::exchange(state.late_storage, {});
  for (const SlotState::Late& l : late) {
    const at::Tensor tensor = view_of(doc_.tensors[static_cast<std::size_t>(l.row)], storage);
    if (!tensor.defined()) continue;
    keep_value(doc_.ops[static_cast<std::size_t>(l.op)], l.path, tensor);
    const std::int32_t stats = stats_for(tensor, slot, Look::values_and_hash);
    doc_.tensors[static_cast<std::size_t>(l.row)].stats = stats;
  }
}

at::Tensor TraceRecorder::rewritten(std::int32_t index) {
  const TensorRow& row = doc_.tensors[static_cast<std::size_t>(index)];
  if (row.slot == kNone || row.stats == kNone) return {};
  const auto storage = slots_.state(row.slot).storage.lock();
  if (!storage) return {};
  const at::Tensor tensor = view_of(row, c10::Storage(storage));
  const StatsRow& before = doc_.stats[static_cast<std::size_t>(row.stats)];
  const auto now = tensor.defined() && before.has_hash ? stats_of(tensor, true) : std::nullopt;
  return now && now->hash != before.hash ? tensor : at::Tensor();
}

void TraceRecorder::watch_shared(const at::Tensor& tensor, std::int32_t slot) {
  SlotState& state = slots_.state(slot);
  const c10::Storage& storage = tensor.storage();
  const SlotOrigin origin = doc_.slots[static_cast<std::size_t>(slot)].origin;
  if (storage.resizable() || !tensor.is_cpu() || storage.nbytes() > kMaxSharedBytes ||
      origin == SlotOrigin::parameter || origin == SlotOrigin::optimizer_state)
    return;
  const std::uint64_t hash = hash_of_storage(storage);
  if (!state.shared) {
    save_outside(slot);  // a reference to it would see what others write
  } else if (hash != state.shared_hash && state.initialised) {
    add_host_write(tensor, slot);
  }
  slots_.state(slot).shared = true;
  slots_.state(slot).shared_hash = hash;
}

}  // namespace nanquest
