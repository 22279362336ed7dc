#include "probe/record/lead.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "probe/record/lead_search.h"
#include "probe/record/memory_views.h"
#include "probe/record/rows.h"
#include "probe/trace/lead_ops.h"

namespace nanquest::record {
namespace {

/// Copies ops from the tables of one step to those of another.
class Joiner {
 public:
  Joiner(Recording& step, const LeadSource& source, const LeadSearch& search)
      : step_(step), from_(source.before), source_(source), search_(search), slots_(source.now.size()) {}

  void add(const std::set<OpId>& ops) {
    std::vector<OpRow> rows;
    rows.reserve(ops.size());
    for (const OpId op : ops) rows.push_back(copy_of(get(from_.doc, op), op));
    const auto count = static_cast<std::int32_t>(rows.size());
    SnapshotDoc& doc = step_.doc;
    for (OpRow& op : doc.ops)
      if (op.forward_op != kNone) op.forward_op += count;
    doc.ops.insert(doc.ops.begin(), std::make_move_iterator(rows.begin()),
                   std::make_move_iterator(rows.end()));
  }

  /// Notes where the step's own first values of the memory are that these ops write to.
  void note_found() {
    std::string text;
    for (const auto& [slot, path] : paths_)
      text += (text.empty() ? "" : ";") + std::to_string(slot.row()) + " " + path;
    if (!text.empty()) step_.doc.environment[kLeadFound] = std::move(text);
  }

  /// What the step found in the memory proves that these ops made it.
  void prove(SlotId slot) {
    const TraceGraph::Write& last = search_.graph().writes(slot).back();
    const auto row = rows_.find(last.row.row());
    const auto found = found_.find(slot);
    if (row == rows_.end() || found == found_.end()) return;
    TensorRow& tensor = step_.doc.tensors[static_cast<std::size_t>(row->second)];
    const at::Tensor& values = found->second;
    if (scalar_type_of(tensor.dtype) != values.scalar_type() ||
        !reaches_within(tensor.sizes, tensor.strides, tensor.storage_offset, values.numel()))
      return;
    const auto stats = stats_of(
        values.flatten().as_strided(tensor.sizes, tensor.strides, tensor.storage_offset), /*hash=*/true);
    if (!stats) return;
    tensor.stats = static_cast<std::int32_t>(step_.doc.stats.size());
    step_.doc.stats.push_back(*stats);
  }

 private:
  std::string put(const char* folder, const at::Tensor& values) {
    step_.data.emplace_back(numbered(folder, step_.data.size()), values.contiguous().clone());
    return step_.data.back().first;
  }

  SlotId slot_of(SlotId slot) {
    SlotId& known = slots_[slot.index()];
    if (known) return known;
    SnapshotDoc& doc = step_.doc;
    known = source_.changed[slot.index()] ? SlotId{} : source_.now[slot.index()];
    if (!known) {
      known = SlotId{doc.slots.size()};
      doc.slots.push_back(get(from_.doc, slot));
    } else if (!search_.written_between(slot)) {
      return known;
    } else if (const at::Tensor* const now = data_at(step_, get(doc, known).data)) {
      found_.emplace(slot, *now);
      paths_.emplace(known, get(doc, known).data);
    }
    Slot& memory = get(doc, known);
    if (search_.is_made_between(slot)) {
      memory.origin = SlotOrigin::produced;
      memory.name.clear();
      memory.data.clear();
    } else if (const at::Tensor* const first = search_.first_values(slot)) {
      memory.data = put("lead/slot_data/", *first);
    }
    return known;
  }

  std::int32_t row_of(std::int32_t row) {
    if (!find_row(from_.doc, TensorId{row})) return kNone;
    const auto [at, fresh] = rows_.try_emplace(row, static_cast<std::int32_t>(step_.doc.tensors.size()));
    if (!fresh) return at->second;
    TensorRow copy = get(from_.doc, TensorId{row});
    copy.stats = kNone;
    if (copy.slot != kNone) copy.slot = slot_of(SlotId{copy.slot}).row();
    step_.doc.tensors.push_back(std::move(copy));
    return at->second;
  }

  std::int32_t module_of(std::int32_t module) {
    if (module == kNone) return kNone;
    const ModuleRow& row = get(from_.doc, ModuleId{module});
    std::vector<ModuleRow>& all = step_.doc.modules;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const ModuleRow& m) { return m.path == row.path; });
    if (found != all.end()) return static_cast<std::int32_t>(found - all.begin());
    all.push_back(row);
    return static_cast<std::int32_t>(all.size()) - 1;
  }

  OpRow copy_of(const OpRow& op, OpId id) {
    SnapshotDoc& doc = step_.doc;
    OpRow copy = op;
    copy.phase = Phase::forward;
    copy.micro_batch = 0;
    copy.forward_op = kNone;
    copy.module = module_of(op.module);
    copy.first_output = static_cast<std::int32_t>(doc.tensors.size());
    for (const TensorId row : search_.graph().outputs(id)) (void)row_of(row.row());
    copy.first_arg = static_cast<std::int32_t>(doc.args.size());
    for (std::int32_t i = 0; i < op.arg_count; ++i) {
      ArgRow token = from_.doc.args[static_cast<std::size_t>(op.first_arg) + static_cast<std::size_t>(i)];
      token.tensor = row_of(token.tensor);
      doc.args.push_back(std::move(token));
    }
    copy.first_written = static_cast<std::int32_t>(doc.written.size());
    for (std::int32_t i = 0; i < op.written_count; ++i) {
      const std::int32_t row =
          row_of(from_.doc.written[static_cast<std::size_t>(op.first_written) + static_cast<std::size_t>(i)]);
      doc.written.push_back(row);
    }
    if (op.stack != kNone) {
      copy.stack = static_cast<std::int32_t>(doc.stacks.size());
      doc.stacks.push_back(from_.doc.stacks[static_cast<std::size_t>(op.stack)]);
    }
    if (const at::Tensor* const bytes = data_at(from_, op.host_data))
      copy.host_data = put("lead/host_writes/", *bytes);
    if (op.rng != kNone)
      if (const at::Tensor* const state =
              data_at(from_, from_.doc.rng_states[static_cast<std::size_t>(op.rng)])) {
        copy.rng = static_cast<std::int32_t>(doc.rng_states.size());
        doc.rng_states.push_back(put("lead/rng/", *state));
      }
    return copy;
  }

  Recording& step_;
  const Recording& from_;
  const LeadSource& source_;
  const LeadSearch& search_;
  std::vector<SlotId> slots_;                  ///< by slot of the step before
  std::map<std::int32_t, std::int32_t> rows_;  ///< of tensors
  std::map<SlotId, at::Tensor> found_;         ///< what the present step found there
  std::map<SlotId, std::string> paths_;        ///< by slot of the present step: where that is kept
};

}  // namespace

std::int32_t add_lead(Recording& step, const LeadSource& source) {
  const at::NoGradGuard no_grad;
  const LeadSearch search(step, source);
  std::set<OpId> ops;
  std::vector<SlotId> made;
  bool all_known = source.without_gap;
  for (const SlotId slot : search.bad()) {
    const auto behind = search.ops_behind(slot);
    all_known = all_known && behind;
    if (!behind || behind->empty()) continue;
    ops.insert(behind->begin(), behind->end());
    made.push_back(slot);
  }
  if (!ops.empty() || all_known) step.doc.environment[kLeadOps] = std::to_string(ops.size());
  if (ops.empty()) return 0;
  Joiner joiner(step, source, search);
  joiner.add(ops);
  for (const SlotId slot : made) joiner.prove(slot);
  joiner.note_found();
  step.doc.basis = "survivors";
  step.doc.culprit = {};
  step.doc.twin = {};
  std::erase_if(step.data, [](const auto& data) { return data.first.starts_with("twin/"); });
  return static_cast<std::int32_t>(ops.size());
}

}  // namespace nanquest::record
