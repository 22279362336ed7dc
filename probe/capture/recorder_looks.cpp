// TraceRecorder: statistics and hashes of what ops read and write, each computed once.
#include <ATen/ATen.h>

#include <algorithm>
#include <atomic>

#include "probe/capture/arguments.h"
#include "probe/capture/first_value.h"
#include "probe/capture/recorder.h"
#include "probe/capture/recorder_parts.h"
#include "probe/tensor/parallel.h"
#include "probe/tensor/each_tensor.h"

namespace nanquest {
namespace {

enum class Likeness { none, same_elements, same };

/// How the elements of `tensor` are like those of `k`, a view of the same memory.
Likeness likeness(const SlotState::Known& k, std::uint64_t count, const at::Tensor& tensor, bool contiguous,
                  bool dense) {
  if (k.offset != tensor.storage_offset()) return Likeness::none;
  if (tensor.sizes() == k.sizes && tensor.strides() == k.strides) return Likeness::same;
  if (!k.dense || !dense || count != static_cast<std::uint64_t>(tensor.numel())) return Likeness::none;
  return k.contiguous && contiguous ? Likeness::same : Likeness::same_elements;
}

}  // namespace

std::int32_t TraceRecorder::stats_for(const at::Tensor& tensor, std::int32_t slot, Look look) {
  if (!options_.scan || look == Look::nothing) return kNone;
  const auto type = dtype_of(tensor.scalar_type());
  if (!type) return kNone;
  const bool hash = options_.hash && look == Look::values_and_hash;
  const bool contiguous = tensor.is_contiguous(), dense = contiguous || tensor.is_non_overlapping_and_dense();
  SlotState& state = slots_.state(slot);
  std::optional<StatsRow> stats;
  for (const SlotState::Known& k : state.known) {
    const StatsRow& seen = doc_.stats[static_cast<std::size_t>(k.stats)];
    if (k.generation != state.generation || k.dtype != *type || (hash && !seen.has_hash)) continue;
    const Likeness like = likeness(k, seen.count, tensor, contiguous, dense);
    if (like == Likeness::same) return k.stats;
    if (like == Likeness::none || hash || seen.non_finite() > 0) continue;
    stats = seen;  // in another order the hash is another; so would be the index of the first bad element
    stats->has_hash = false;
    stats->hash = 0;
  }
  if (const auto seen = ready_.find(tensor.unsafeGetTensorImpl());
      !stats && seen != ready_.end() && (seen->second.has_hash || !hash))
    stats = seen->second;
  if (!stats && looked_at_later(slot, look)) return kNone;
  if (!stats) stats = stats_of(tensor, hash);
  if (!stats) return kNone;
  const auto index = static_cast<std::int32_t>(doc_.stats.size());
  doc_.stats.push_back(*stats);
  std::erase_if(state.known, [&](const auto& k) { return k.generation != state.generation; });
  state.known.push_back({state.generation, index, *type, tensor.storage_offset(), tensor.sizes().vec(),
                         tensor.strides().vec(), contiguous, dense});
  return index;
}

bool TraceRecorder::looked_at_later(std::int32_t slot, Look look) const {
  if (!options_.lazy || !options_.scan || look != Look::values) return false;
  const SlotState& state = slots_.state(slot);
  return state.generation == 0 && !state.shared && (state.live || state.saved.defined());
}

void TraceRecorder::look_at_first_values(std::int32_t index) {
  TensorRow& row = doc_.tensors[static_cast<std::size_t>(index)];
  SlotState& state = slots_.state(row.slot);
  const at::ScalarType type = scalar_type_of(row.dtype);
  for (const std::int32_t seen : state.first_rows) {
    const TensorRow& other = doc_.tensors[static_cast<std::size_t>(seen)];
    if (other.dtype == row.dtype && other.storage_offset == row.storage_offset && other.sizes == row.sizes &&
        other.strides == row.strides) {
      row.stats = other.stats;
      return;
    }
  }
  const c10::Storage storage = state.live ? state.live : state.saved.storage();
  // A program may have shrunk a storage without an op.
  const auto held = static_cast<std::int64_t>(storage.nbytes() / c10::elementSize(type));
  if (!reaches_within(row.sizes, row.strides, row.storage_offset, held)) return;
  const at::Tensor view = at::empty({0}, at::TensorOptions().dtype(type).device(storage.device()))
                              .set_(storage, row.storage_offset, row.sizes, row.strides);
  const auto stats = stats_of(view, /*hash=*/false);
  if (!stats) return;
  row.stats = static_cast<std::int32_t>(doc_.stats.size());
  doc_.stats.push_back(*stats);
  state.first_rows.push_back(index);
}

void TraceRecorder::look_ahead(std::vector<at::Tensor> tensors, Look look) {
  ready_.clear();
  if (!options_.scan || tensors.size() < 2 || threads_here() == 1) return;
  std::erase_if(tensors, [](const at::Tensor& t) { return !can_record(t) || !t.is_cpu(); });
  const auto bytes = [](const at::Tensor& t) {
    return t.numel() * static_cast<std::int64_t>(t.element_size());
  };
  std::int64_t all = 0;
  for (const at::Tensor& t : tensors) all += bytes(t);
  if (all < static_cast<std::int64_t>(kWorthWaking)) return;
  // The largest first: whoever takes the last one should have little left to do.
  std::sort(tensors.begin(), tensors.end(),
            [&](const at::Tensor& a, const at::Tensor& b) { return bytes(a) > bytes(b); });
  const bool hash = options_.hash && look == Look::values_and_hash;
  std::vector<std::optional<StatsRow>> rows(tensors.size());
  std::atomic<std::size_t> next{0};
  parallel_ranges(threads_here(), 1, [&](std::int64_t, std::int64_t) {
    for (std::size_t i; (i = next++) < tensors.size();) rows[i] = stats_of(tensors[i], hash);
  });
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (rows[i]) ready_.emplace(tensors[i].unsafeGetTensorImpl(), *rows[i]);
}

void TraceRecorder::look_ahead_at_inputs(const OpTraits& traits, c10::ArrayRef<const c10::IValue> inputs) {
  ready_.clear();
  if (!options_.scan || traits.awaits || traits.opaque) return;
  std::vector<at::Tensor> unknown;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].isTensorList() || traits.argument_overwritten[i]) continue;
    for (const at::Tensor& t : inputs[i].toTensorVector()) {
      const std::int32_t slot = can_record(t) ? slots_.find(t) : kNone;
      const auto known = [&](const SlotState::Known& k) {
        return k.generation == slots_.state(slot).generation;
      };
      if (slot != kNone && looked_at_later(slot, Look::values)) continue;
      if (slot == kNone ||
          std::none_of(slots_.state(slot).known.begin(), slots_.state(slot).known.end(), known))
        unknown.push_back(t);
    }
  }
  look_ahead(std::move(unknown), Look::values);
}

void TraceRecorder::look_ahead_at_outputs(const OpTraits& traits, c10::ArrayRef<const c10::IValue> outputs,
                                          const std::vector<at::Tensor>& written) {
  ready_.clear();
  if (!options_.scan || traits.uninitialised || traits.collective) return;
  std::vector<at::Tensor> made = written;
  for (const c10::IValue& output : outputs)
    each_tensor(output, [&](const at::Tensor& t) {
      if (can_record(t) && slots_.find(t) == kNone) made.push_back(t);
    });
  look_ahead(std::move(made), Look::values_and_hash);
}

}  // namespace nanquest
