// StepTables: named values as they were when the step began, what the step left behind, and stacks in words.
#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "probe/record/memory_views.h"
#include "probe/record/rows.h"
#include "probe/record/tables.h"
#include "probe/trace/op_facts.h"

namespace nanquest {

using record::SlotRecord;
using record::Step;

void StepTables::keep_first(const char* group, const std::vector<NamedMemory>& tensors,
                            std::vector<NamedTensor>& rows) {
  const at::NoGradGuard no_grad;
  for (const NamedMemory& named : tensors) {
    if (!named.tensor.defined()) continue;
    std::string path = std::string(group) + "/" + named.name;
    if (!named.storage || !is_plain(named.tensor)) {
      recording.notes.push_back(path + ": not plain memory, kept by name only");
      rows.push_back(by_name_only(named.name, named.tensor));
      continue;
    }
    // Two tensors of one name must not share a path in the file.
    if (const int used = ++paths_used_[path]; used > 1) path.append("#").append(std::to_string(used));
    rows.push_back(first_value_row(path, named));
  }
}

NamedTensor StepTables::first_value_row(const std::string& path, const NamedMemory& named) {
  const at::Tensor& tensor = named.tensor;
  NamedTensor row = by_name_only(named.name, tensor);
  row.slot = static_cast<std::int32_t>(step_.slots.find(named.storage));
  row.data = path;
  const at::Tensor saved = row.slot == kNone ? at::Tensor{} : first_[static_cast<std::size_t>(row.slot)];
  // A slot that the trace produced (a buffer created inside the step) has no first value: its present value
  // is kept.
  const bool known =
      saved.defined() && saved.scalar_type() == tensor.scalar_type() &&
      record::reaches_within(tensor.sizes(), tensor.strides(), tensor.storage_offset(), saved.numel());
  const at::Tensor first = known ? saved.as_strided(tensor.sizes(), tensor.strides(), tensor.storage_offset())
                                 : tensor.detach().to(at::kCPU);
  if (!known) programs_.insert(first.storage().data());
  if (known && tensor.is_contiguous() && tensor.numel() == saved.numel()) {
    // Stored once: the slot's bytes are this tensor, so the slot refers to it.
    Slot& owner = recording.doc.slots[static_cast<std::size_t>(row.slot)];
    std::erase_if(recording.data, [&](const auto& d) { return d.first == owner.data; });
    owner.data = row.data;
  } else if (known && tensor.is_contiguous()) {
    views_[row.data] = {static_cast<std::uint32_t>(row.slot),
                        static_cast<std::uint64_t>(tensor.storage_offset()) * tensor.element_size()};
  }
  recording.data.emplace_back(row.data, first.contiguous());
  return row;
}

at::Tensor StepTables::values_now(std::uint32_t slot) const {
  const SlotRecord& record = step_.slots[slot];
  if (record.written_late || record.put_back || record.forgotten) return {};
  const auto now = [&]() -> at::Tensor {
    const auto alive = record.storage.lock();
    if (!alive) return {};
    const c10::Storage storage(alive);
    if (!storage.device().is_cpu()) return copy_storage(storage, record.type);
    return storage.data() ? record::typed_bytes(storage.data(), storage.nbytes(), at::kByte, storage)
                          : at::Tensor{};
  };
  if (&step_ == recorder_.current() || step_.of_tape) return now();
  const Step* next = recorder_.find(step_.number + 1);
  if (!next || record.produced) return {};
  const std::uint32_t there = next->slots.find(record.storage._unsafe_get_target());
  // The running step has not used it yet.
  if (there == record::SlotIndex::kMissing && next == recorder_.current()) return now();
  if (there == record::SlotIndex::kMissing || next->slots[there].produced) return {};
  bool trusted = true;
  const at::Tensor values = first_values(*next, there, trusted);
  return values.defined() && trusted ? values.view(at::kByte) : at::Tensor{};
}

void StepTables::hash_survivors() {
  const at::NoGradGuard no_grad;
  std::vector<std::int32_t> last(step_.slots.size(), kNone);
  for (const OpRow& op : recording.doc.ops)
    for (std::int32_t i = 0; i < op.written_count; ++i) {
      const std::int32_t row =
          recording.doc.written[static_cast<std::size_t>(op.first_written) + static_cast<std::size_t>(i)];
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
        record::typed_bytes(bytes.const_data_ptr(), bytes.nbytes(), type, bytes.storage());
    if (typed.scalar_type() != type) continue;
    if (!record::reaches_within(row.sizes, row.strides, row.storage_offset, typed.numel()))
      continue;  // made smaller since then
    row.stats = add_stats(typed.as_strided(row.sizes, row.strides, row.storage_offset));
  }
}

void StepTables::symbolise_culprit() {
  SnapshotDoc& doc = recording.doc;
  if (doc.culprit.op == kNone) return;
  const auto words = [&](std::int32_t index) {
    if (index == kNone) return;
    OpRow& op = doc.ops[static_cast<std::size_t>(index)];
    const auto& stack = stacks_[static_cast<std::size_t>(index)];
    if (!stack || op.stack != kNone) return;
    auto frames = stack->symbolise();
    if (frames.empty()) return;
    op.stack = static_cast<std::int32_t>(doc.stacks.size());
    doc.stacks.push_back(std::move(frames));
  };
  words(doc.culprit.op);
  words(doc.ops[static_cast<std::size_t>(doc.culprit.op)].forward_op);
}

void StepTables::symbolise_all() {
  SnapshotDoc& doc = recording.doc;
  std::map<std::vector<std::string>, std::int32_t> known;
  for (std::size_t i = 0; i < doc.ops.size() && i < stacks_.size(); ++i) {
    const auto& stack = stacks_[i];
    if (!stack || doc.ops[i].stack != kNone) continue;
    std::vector<std::string> frames = stack->symbolise();
    if (frames.empty()) continue;
    const auto [at, fresh] = known.emplace(std::move(frames), static_cast<std::int32_t>(doc.stacks.size()));
    if (fresh) doc.stacks.push_back(at->first);
    doc.ops[i].stack = at->second;
  }
}

}  // namespace nanquest
