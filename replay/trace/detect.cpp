#include "replay/trace/detect.h"

#include <algorithm>

namespace nanquest {
namespace {

template <class T>
const T* row_of(const std::vector<T>& table, std::int32_t index) {
  return index >= 0 && static_cast<std::size_t>(index) < table.size()
             ? &table[static_cast<std::size_t>(index)]
             : nullptr;
}

/// Where each slot's bad values were last written, as the run goes on.
class Provenance {
 public:
  Provenance(const SnapshotDoc& doc, const RunResult& run)
      : doc_(doc),
        run_(run),
        bad_writer_(doc.slots.size(), kNone),
        source_(doc.ops.size(), kNone),
        outside_(doc.ops.size(), kNone),
        touched_(doc.slots.size(), false) {
    for (std::size_t i = 0; i < doc.ops.size() && i < run.ops.size(); ++i)
      visit(static_cast<std::int32_t>(i));
  }
  /// The op that handed bad values to `op`, kNone if none did.
  std::int32_t source(std::int32_t op) const { return source_[static_cast<std::size_t>(op)]; }
  /// The outside slot that `op` reads and that nobody had written, kNone if none.
  std::int32_t outside(std::int32_t op) const { return outside_[static_cast<std::size_t>(op)]; }

 private:
  void visit(std::int32_t index) {
    const OpRow& op = doc_.ops[static_cast<std::size_t>(index)];
    for (std::int32_t a = 0; a < op.arg_count; ++a) {
      const ArgRow* token = row_of(doc_.args, op.first_arg + a);
      if (token && token->kind == ArgKind::tensor) read(index, row_of(doc_.tensors, token->tensor));
    }
    const OpOutcome& outcome = run_.ops[static_cast<std::size_t>(index)];
    for (std::size_t w = 0; w < outcome.written.size(); ++w) {
      const std::int32_t* row = row_of(doc_.written, op.first_written + static_cast<std::int32_t>(w));
      if (row) write(index, row_of(doc_.tensors, *row), outcome.written[w]);
    }
  }
  void read(std::int32_t index, const TensorRow* row) {
    const Slot* slot = row ? row_of(doc_.slots, row->slot) : nullptr;
    if (!slot) return;
    const auto s = static_cast<std::size_t>(row->slot);
    std::int32_t& source = source_[static_cast<std::size_t>(index)];
    if (source == kNone) source = bad_writer_[s];
    std::int32_t& outside = outside_[static_cast<std::size_t>(index)];
    const StatsRow* stats = row_of(doc_.stats, row->stats);
    if (outside == kNone && !touched_[s] && slot->origin != SlotOrigin::produced && stats &&
        stats->non_finite() > 0)
      outside = row->slot;
  }
  void write(std::int32_t index, const TensorRow* row, const StatsRow& stats) {
    const Slot* slot = row ? row_of(doc_.slots, row->slot) : nullptr;
    if (!slot) return;
    const auto s = static_cast<std::size_t>(row->slot);
    touched_[s] = true;
    if (stats.non_finite() > 0 && !(doc_.ops[static_cast<std::size_t>(index)].flags & kOpUninitialised))
      bad_writer_[s] = index;
    else if (stats.count * dtype_size(row->dtype) >= slot->bytes)
      bad_writer_[s] = kNone;  // wholly overwritten with good values
  }

  const SnapshotDoc& doc_;
  const RunResult& run_;
  std::vector<std::int32_t> bad_writer_, source_, outside_;
  std::vector<bool> touched_;
};

std::string module_of(const SnapshotDoc& doc, const OpRow& op) {
  if (const ModuleRow* module = row_of(doc.modules, op.module)) return module->path;
  const OpRow* forward = row_of(doc.ops, op.forward_op);
  const ModuleRow* module = forward ? row_of(doc.modules, forward->module) : nullptr;
  return module ? module->path : std::string();
}

Anomaly explain(const SnapshotDoc& doc, const RunResult& run, const Provenance& from, std::int32_t index) {
  const OpRow& op = doc.ops[static_cast<std::size_t>(index)];
  Anomaly a;
  a.op = index;
  a.name = SnapshotDoc::qualified_name(op);
  a.phase = op.phase;
  a.module = module_of(doc, op);
  a.node = op.node;
  a.forward_op = op.forward_op;
  if (const OpRow* forward = row_of(doc.ops, op.forward_op))
    a.forward_name = SnapshotDoc::qualified_name(*forward);
  std::uint64_t nan = 0, inf = 0;
  for (const StatsRow& stats : run.ops[static_cast<std::size_t>(index)].written) {
    nan += stats.nan;
    inf += stats.pos_inf + stats.neg_inf;
    if (a.first < 0 && stats.first_bad >= 0) a.first = stats.first_bad;
  }
  a.count = nan + inf;
  a.kind = nan == 0 ? "inf" : inf == 0 ? "nan" : "mixed";
  a.inputs_finite = std::find(run.births.begin(), run.births.end(), index) != run.births.end();
  if (a.inputs_finite) return a;
  std::int32_t origin = index;
  for (std::int32_t at = from.source(index); at != kNone && at < origin; at = from.source(at)) {
    a.came_from.push_back(at);
    origin = at;
    if (std::find(run.births.begin(), run.births.end(), at) != run.births.end()) break;
  }
  std::reverse(a.came_from.begin(), a.came_from.end());
  if (const Slot* slot = row_of(doc.slots, from.outside(origin)))
    a.outside = slot->name.empty() ? "slot " + std::to_string(from.outside(origin)) : slot->name;
  return a;
}

const char* phase_name(Phase phase) {
  constexpr const char* names[] = {"input", "forward", "backward", "optimizer"};
  return names[static_cast<int>(phase) & 3];
}

}  // namespace

Detection detect(const SnapshotDoc& doc, const RunResult& run) {
  Detection result;
  const Provenance from(doc, run);
  for (const OpOutcome& op : run.ops) {
    if (!op.written.empty()) ++result.ops_checked;
    result.outputs_checked += static_cast<std::int64_t>(op.written.size());
  }
  const auto known = [&](std::int32_t op) { return row_of(doc.ops, op) && row_of(run.ops, op); };
  if (known(run.first_inf)) result.first_inf = explain(doc, run, from, run.first_inf);
  if (known(run.first_nan)) result.first_nan = explain(doc, run, from, run.first_nan);
  for (const std::int32_t op : run.births)
    if (known(op)) result.births.push_back(explain(doc, run, from, op));
  return result;
}

std::string describe(const SnapshotDoc& doc, const Anomaly& a) {
  if (a.op == kNone) return "nothing non-finite";
  std::string text = a.name + " (op " + std::to_string(a.op) + ", " + phase_name(a.phase);
  if (!a.node.empty()) text += ", " + a.node;
  if (!a.forward_name.empty()) text += " of " + a.forward_name;
  text += ")";
  if (!a.module.empty()) text += " in " + a.module;
  const std::string what = a.kind == "inf" ? "Inf" : a.kind == "nan" ? "NaN" : "NaN and Inf";
  text += " wrote " + std::to_string(a.count) + " " + what + ", first at element " + std::to_string(a.first);
  if (a.inputs_finite) return text + ", out of finite inputs";
  if (!a.outside.empty()) return text + "; bad values came in with " + a.outside;
  if (a.came_from.empty()) return text;
  const OpRow& origin = doc.ops[static_cast<std::size_t>(a.came_from.front())];
  return text + "; the bad values came from " + SnapshotDoc::qualified_name(origin) + " (op " +
         std::to_string(a.came_from.front()) + ")";
}

}  // namespace nanquest
