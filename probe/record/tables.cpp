#include "probe/record/tables.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "probe/observe/op_traits.h"
#include "probe/record/memory_views.h"
#include "probe/record/rows.h"
#include "probe/record/tape_recording.h"
#include "probe/record/twin_rows.h"
#include "probe/record/value_watch.h"
#include "probe/tensor/tensor_scan.h"
#include "probe/trace/culprit.h"
#include "probe/trace/phases.h"

namespace nanquest {
using record::SlotRecord;
using record::Step;

std::string argument_name_of(const OpRow& op, std::int32_t position) {
  return argument_name(op.name, op.overload, position);
}

std::vector<NamedMemory> named_memory(const NamedTensors& tensors) {
  std::vector<NamedMemory> named;
  named.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors)
    named.push_back({name, is_plain(tensor) ? tensor.storage().unsafeGetStorageImpl() : nullptr, tensor});
  return named;
}

StepTables::StepTables(Recorder& recorder, Step& step) : recorder_(recorder), step_(step) {}

void StepTables::announce(const std::vector<NamedMemory>& group, SlotOrigin origin) {
  for (const NamedMemory& each : group)
    if (each.storage) names_.emplace(each.storage, Name{origin, each.name});
}

void StepTables::build(const StepNames& names) {
  const at::NoGradGuard no_grad;
  announce(names.parameters, SlotOrigin::parameter);
  announce(names.buffers, SlotOrigin::buffer);
  announce(names.optimizer, SlotOrigin::optimizer_state);
  announce(names.batch, SlotOrigin::input);
  announce(names.loss_scale, SlotOrigin::loss_scale);
  announce(names.gradients, SlotOrigin::gradient);
  if (&step_ == recorder_.current()) recorder_.complete();
  if (step_.watch) recording.doc.stats = step_.watch->stats();
  recording.doc.basis = step_.watch ? "every_output" : "survivors";
  if (std::string lost = step_.kept.call_in_all(); !lost.empty())
    step_.notes.push_back(std::move(lost));
  recording.notes = step_.notes;
  add_slots();
  step_.kept.sort();
  for (std::uint32_t i = 0; i < step_.ops.size(); ++i) add_op(i);
  (void)settle_phases(recording.doc);
}

void StepTables::add_slots() {
  for (std::uint32_t i = 0; i < step_.slots.size(); ++i) {
    const SlotRecord& record = step_.slots[i];
    Slot row;
    row.bytes = record.bytes;
    row.dtype = dtype_of(record.type).value_or(DType::uint8);
    row.device = record.device.str();
    first_.emplace_back();
    if (record.produced) {  // a buffer or a weight that got other memory in this step
      if (const auto named = names_.find(record.storage._unsafe_get_target());
          named != names_.end() &&
          (named->second.origin == SlotOrigin::buffer || named->second.origin == SlotOrigin::parameter))
        row.name = named->second.name;
    } else {
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
        if (record.live) programs_.insert(record.live.data());
        if (record.saved) recorders_.insert(record.saved);
        recording.data.emplace_back(row.data, first_.back());
      }
    }
    recording.doc.slots.push_back(std::move(row));
  }
}

at::Tensor StepTables::first_values(const Step& step, std::uint32_t slot, bool& trusted) const {
  const SlotRecord& record = step.slots[slot];
  trusted = trusted && !record.changed_unseen;
  if (record.lost) return {};
  if (record.unread) {
    const std::size_t item = c10::elementSize(record.type);
    const bool whole = item > 0 && record.first_bytes % item == 0;
    const std::size_t count = whole ? record.first_bytes / item : record.first_bytes;
    return at::zeros({1}, whole ? record.type : at::kByte).expand({static_cast<std::int64_t>(count)});
  }
  if (record.saved) return record::typed_bytes(record.saved, record.first_bytes, record.type, {});
  if (record.saved_on_device.defined()) return copy_storage(record.saved_on_device.storage(), record.type);
  if (!record.live) return {};
  // A later step may have saved what this one read.
  for (const std::int64_t number : recorder_.steps()) {
    const Step* later = recorder_.find(number);
    if (!later || later->number <= step.number) continue;
    const std::uint32_t there = later->slots.find(record.live.unsafeGetStorageImpl());
    if (there == record::SlotIndex::kMissing || later->slots[there].produced || later->slots[there].live)
      continue;
    at::Tensor saved = first_values(*later, there, trusted);
    if (saved.defined() && saved.is_cpu() && record.device.is_cpu())
      trusted = trusted && saved.nbytes() == record.first_bytes &&
                record::hash_of_samples(saved.const_data_ptr(), record.first_bytes) == record.checksum;
    return saved;
  }
  if (record.live.nbytes() < record.first_bytes || !record.live.data()) return {};
  trusted = trusted && !record::changed_since(record);
  if (!record.device.is_cpu()) return copy_storage(record.live, record.type);
  return record::typed_bytes(record.live.data(), record.first_bytes, record.type, record.live);
}

at::Tensor StepTables::first_value(const at::Tensor& tensor) const {
  return is_plain(tensor) ? first_value(tensor.storage().unsafeGetStorageImpl()) : at::Tensor{};
}

at::Tensor StepTables::first_value(const c10::StorageImpl* storage) const {
  const std::uint32_t slot = step_.slots.find(storage);
  if (slot == record::SlotIndex::kMissing || step_.slots[slot].produced) return {};
  bool trusted = true;
  return first_values(step_, slot, trusted);
}

std::int32_t StepTables::add_stats(const at::Tensor& tensor) {
  const auto stats = stats_of(tensor, /*hash=*/true);
  if (!stats) return kNone;
  recording.doc.stats.push_back(*stats);
  return static_cast<std::int32_t>(recording.doc.stats.size()) - 1;
}

std::int32_t StepTables::slot_of(const at::Tensor& tensor) {
  const c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const auto known = static_cast<std::int32_t>(step_.slots.find(storage));
  if (known != kNone) return known;
  const auto [at, fresh] = more_.emplace(storage, static_cast<std::int32_t>(recording.doc.slots.size()));
  if (!fresh) return at->second;
  Slot row;
  row.bytes = tensor.storage().nbytes();
  row.dtype = dtype_of(tensor.scalar_type()).value_or(DType::uint8);
  row.device = tensor.device().str();
  row.origin = SlotOrigin::external;
  first_.push_back(copy_storage(tensor));
  if (row.bytes > 0) {
    row.data = numbered("trace/slot_data/", static_cast<std::size_t>(at->second));
    recording.data.emplace_back(row.data, first_.back());
  }
  recording.doc.slots.push_back(std::move(row));
  return at->second;
}

std::int32_t StepTables::add(const SeenTensor& seen) {
  const bool unseen = (seen.row.flags & kTensorOpaque) != 0;
  if (!seen.tensor.defined() && !unseen) return kNone;
  const at::NoGradGuard no_grad;
  TensorRow row = seen.row;
  if (!unseen && row.slot == kNone) row.slot = slot_of(seen.tensor);
  std::optional<StatsRow> stats = seen.stats;
  if (const record::Step* watched = recorder_.current(); seen.watched != kNone && watched && watched->watch) {
    watched->watch->settle();
    stats = watched->watch->stats()[static_cast<std::size_t>(seen.watched)];
  }
  if (stats) {
    row.stats = static_cast<std::int32_t>(recording.doc.stats.size());
    recording.doc.stats.push_back(*stats);
  }
  recording.doc.tensors.push_back(std::move(row));
  return static_cast<std::int32_t>(recording.doc.tensors.size()) - 1;
}

void StepTables::add_twin() {
  const at::NoGradGuard no_grad;
  for (const record::TwinBatch* twin : recorder_.twins().before(step_.number))
    if (auto made = record::twin_rows({step_, recording.doc, rows_, first_}, *twin)) {
      recording.doc.twin = std::move(made->twin);
      recording.data.insert(recording.data.end(), std::make_move_iterator(made->data.begin()),
                            std::make_move_iterator(made->data.end()));
      return;
    }
}

void StepTables::refer_to_files() {
  record::refer_to_files(recording, step_, std::move(views_));
}

std::shared_ptr<TapeRecording> StepTables::tape() {
  return tape_recording(std::exchange(recording, {}), step_, rows_);
}

void StepTables::finish(const StepNames& names) {
  SnapshotDoc& doc = recording.doc;
  keep_first("parameters", names.parameters, doc.parameters);
  keep_first("buffers", names.buffers, doc.buffers);
  keep_first("optimizer", names.optimizer, doc.optimizer);
  keep_first("batch", names.batch, doc.batch);
  if (!step_.of_tape) add_twin();
  if (step_.watch) {
    (void)find_culprit(doc, argument_name_of);
    settle_name(doc, [&](const NamedTensor& named) {
      const auto at = std::find_if(recording.data.begin(), recording.data.end(),
                                   [&](const auto& data) { return data.first == named.data; });
      const auto stats = at == recording.data.end() ? std::nullopt : stats_of(at->second, /*hash=*/false);
      return stats && stats->non_finite() > 0;
    });
    return symbolise_culprit();
  }
  doc.writer += ", standing trace";
  hash_survivors();
  symbolise_all();
}

void StepTables::own(const std::shared_ptr<const Recorder>& recorder) {
  for (auto& [path, tensor] : recording.data) {
    const void* const memory = tensor.storage().data();
    if (programs_.count(memory) > 0)
      tensor = tensor.clone();
    else if (recorders_.count(memory) > 0)
      tensor = at::from_blob(
          tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(), [recorder](void*) {},
          tensor.options());
  }
}

}  // namespace nanquest
