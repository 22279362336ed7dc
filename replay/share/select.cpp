#include "replay/share/select.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace nanquest {
namespace {

/// Old rows to new ones, in the order in which they are requested; rows of `table` are copied to `out`.
template <class Row>
class Moved {
 public:
  Moved(const std::vector<Row>& table, std::vector<Row>& out)
      : table_(table), out_(out), new_(table.size(), kNone) {
    out.clear();
  }
  std::int32_t operator()(std::int32_t row) {
    if (row == kNone) return kNone;
    std::int32_t& moved = new_[static_cast<std::size_t>(row)];
    if (moved == kNone) {
      moved = static_cast<std::int32_t>(out_.size());
      out_.push_back(table_[static_cast<std::size_t>(row)]);
    }
    return moved;
  }
  bool has(std::int32_t row) const { return row != kNone && new_[static_cast<std::size_t>(row)] != kNone; }
  std::int32_t at(std::int32_t row) const {
    return row == kNone ? kNone : new_[static_cast<std::size_t>(row)];
  }

 private:
  const std::vector<Row>& table_;
  std::vector<Row>& out_;
  std::vector<std::int32_t> new_;
};

/// Index of the `i`-th row of a range.
std::size_t place(std::int32_t first, std::int32_t i) {
  return static_cast<std::size_t>(first) + static_cast<std::size_t>(i);
}

std::string opaque_folder(std::int32_t op) {
  char text[16];
  std::snprintf(text, sizeof text, "%06d", op);
  return std::string(kOpaqueValues) + text;
}

/// Done op by op: rows are copied when ops refer to them.
class Selection {
 public:
  Selection(const SnapshotDoc& from, const std::vector<bool>& keep, Selected& out)
      : from_(from),
        doc_(out.doc),
        new_op_(out.new_op),
        tensors_(from.tensors, doc_.tensors),
        stats_(from.stats, doc_.stats),
        stacks_(from.stacks, doc_.stacks),
        states_(from.rng_states, doc_.rng_states) {
    doc_.args.clear();
    doc_.written.clear();
    doc_.ops.clear();
    new_op_.assign(from.ops.size(), kNone);
    std::int32_t count = 0;
    for (std::size_t i = 0; i < keep.size(); ++i)
      if (keep[i]) new_op_[i] = count++;
    for (std::size_t i = 0; i < keep.size(); ++i)
      if (keep[i]) take(from.ops[i]);
  }

  /// After the last op: what the rest of the doc refers to.
  void finish() {
    slots_of_ops();
    outcomes();
    named_tensors();
    culprit();
    twin();
    for (TensorRow& row : doc_.tensors) row.stats = stats_(row.stats);
  }

 private:
  std::int32_t moved_op(std::int32_t op) const {
    return op == kNone ? kNone : new_op_[static_cast<std::size_t>(op)];
  }

  void take(const OpRow& old) {
    OpRow op = old;
    op.first_arg = static_cast<std::int32_t>(doc_.args.size());
    for (std::int32_t i = 0; i < old.arg_count; ++i) {
      ArgRow arg = from_.args[place(old.first_arg, i)];
      arg.tensor = tensors_(arg.tensor);
      doc_.args.push_back(std::move(arg));
    }
    // An op's outputs are neighbours: rows that are there already are copied again.
    op.first_output = static_cast<std::int32_t>(doc_.tensors.size());
    for (std::int32_t i = 0; i < old.output_count; ++i)
      doc_.tensors.push_back(from_.tensors[place(old.first_output, i)]);
    op.first_written = static_cast<std::int32_t>(doc_.written.size());
    for (std::int32_t i = 0; i < old.written_count; ++i) {
      const std::int32_t row = from_.written[place(old.first_written, i)];
      const std::int32_t output = row - old.first_output;
      doc_.written.push_back(row != kNone && output >= 0 && output < old.output_count
                                 ? op.first_output + output
                                 : tensors_(row));
    }
    op.forward_op = moved_op(old.forward_op);
    op.stack = stacks_(old.stack);
    op.rng = states_(old.rng);
    doc_.ops.push_back(std::move(op));
  }

  void slots_of_ops() {
    touched_.assign(doc_.slots.size(), false);
    for (const TensorRow& row : doc_.tensors)
      if (row.slot != kNone) touched_[static_cast<std::size_t>(row.slot)] = true;
    made_.assign(doc_.slots.size(), false);
    for (const OpRow& op : doc_.ops)
      for (std::int32_t i = 0; i < op.output_count; ++i)
        if (const std::int32_t slot = doc_.tensors[place(op.first_output, i)].slot; slot != kNone)
          made_[static_cast<std::size_t>(slot)] = true;
    // What a missing op would have written has another value now; an update comes after the step's outcome.
    for (std::size_t i = 0; i < from_.ops.size(); ++i) {
      const OpRow& op = from_.ops[i];
      if (new_op_[i] != kNone || op.phase == Phase::optimizer) continue;
      for (std::int32_t k = 0; k < op.written_count; ++k)
        if (const std::int32_t row = from_.written[place(op.first_written, k)]; row != kNone)
          if (const std::int32_t slot = from_.tensors[static_cast<std::size_t>(row)].slot; slot != kNone)
            made_[static_cast<std::size_t>(slot)] = false;
    }
    for (std::size_t i = 0; i < doc_.slots.size(); ++i)
      if (!touched_[i]) {
        doc_.slots[i].data.clear();
        doc_.slots[i].name.clear();
      }
  }

  /// True if the row can be computed by the ops that are left, or is independent of the others.
  bool is_there(std::int32_t row) const {
    if (row == kNone) return false;
    const std::int32_t slot = from_.tensors[static_cast<std::size_t>(row)].slot;
    return slot != kNone && (made_[static_cast<std::size_t>(slot)] ||
                             (touched_[static_cast<std::size_t>(slot)] &&
                              !doc_.slots[static_cast<std::size_t>(slot)].data.empty()));
  }

  void outcomes() {
    doc_.loss = is_there(from_.loss) ? tensors_(from_.loss) : kNone;
    for (std::int32_t& gradient : doc_.gradients) gradient = is_there(gradient) ? tensors_(gradient) : kNone;
  }

  void named_tensors() {
    const bool paired = doc_.gradients.size() == doc_.parameters.size();
    const auto touched = [&](const NamedTensor& row) {
      return row.slot != kNone && touched_[static_cast<std::size_t>(row.slot)];
    };
    std::vector<NamedTensor> parameters;
    std::vector<std::int32_t> gradients;
    for (std::size_t i = 0; i < doc_.parameters.size(); ++i) {
      if (!touched(doc_.parameters[i]) && !(paired && doc_.gradients[i] != kNone)) continue;
      parameters.push_back(doc_.parameters[i]);
      if (paired) gradients.push_back(doc_.gradients[i]);
    }
    doc_.parameters = std::move(parameters);
    if (paired) doc_.gradients = std::move(gradients);
    for (auto* rows : {&doc_.buffers, &doc_.optimizer, &doc_.batch})
      std::erase_if(*rows, [&](const NamedTensor& row) { return !touched(row); });
  }

  void culprit() {
    Culprit& culprit = doc_.culprit;
    culprit.op = moved_op(culprit.op);
    for (auto* list : {&culprit.lineage, &culprit.suppressed}) {
      for (std::int32_t& op : *list) op = moved_op(op);
      std::erase(*list, kNone);
    }
  }

  void twin() {
    const auto end = new_op_.begin() + std::min<std::ptrdiff_t>(doc_.twin.ops, std::ssize(new_op_));
    doc_.twin.ops = static_cast<std::int32_t>(
        std::count_if(new_op_.begin(), end, [](std::int32_t op) { return op != kNone; }));
    for (TwinValue& value : doc_.twin.values) value.op = moved_op(value.op);
    std::erase_if(doc_.twin.values, [&](const TwinValue& value) {
      return value.op == kNone && (value.slot == kNone || !touched_[static_cast<std::size_t>(value.slot)]);
    });
  }

  const SnapshotDoc& from_;
  SnapshotDoc& doc_;
  std::vector<std::int32_t>& new_op_;
  Moved<TensorRow> tensors_;
  Moved<StatsRow> stats_;
  Moved<std::vector<std::string>> stacks_;
  Moved<std::string> states_;
  std::vector<bool> touched_, made_;  // per slot
};

}  // namespace

std::vector<bool> needed_for(const TraceGraph& graph, const std::vector<std::int32_t>& roots,
                             const std::vector<std::int32_t>& ops) {
  const SnapshotDoc& doc = graph.doc();
  std::vector<bool> needed(doc.ops.size());
  // The op that allocated the memory of each slot, whether or not it wrote any.
  std::vector<std::int32_t> maker(doc.slots.size(), kNone);
  for (const OpId op : graph.ops())
    for (const TensorId row : graph.outputs(op))
      if (const SlotId slot = graph.slot(row); slot && maker[slot.index()] == kNone)
        maker[slot.index()] = op.row();
  std::vector<OpId> open;
  const auto need = [&](OpId op) {
    if (!op || needed[op.index()]) return;
    needed[op.index()] = true;
    open.push_back(op);
  };
  const auto need_row = [&](TensorId row, OpId before) {
    const SlotId slot = graph.slot(row);
    if (!slot) return;
    if (const std::int32_t made = maker[slot.index()]; made != kNone && OpId{made} < before) need(OpId{made});
    graph.each_write_behind(row, before, [&](const TraceGraph::Write& write) {
      need(write.op);
      return false;
    });
  };
  for (const std::int32_t root : roots)
    if (root != kNone) need_row(TensorId{root}, graph.end());
  for (const std::int32_t op : ops)
    if (op != kNone) need(OpId{op});
  while (!open.empty()) {
    const OpId op = open.back();
    open.pop_back();
    for (const TraceGraph::Argument& argument : graph.arguments(op)) need_row(argument.row, op);
    for (const TensorId row : graph.written(op)) need_row(row, op);
    need(graph.forward_of(op));
  }
  return needed;
}

Selected select_ops(const SnapshotDoc& doc, const std::vector<bool>& keep, const CopiedPaths& paths) {
  Selected out{doc, {}, {}};
  Selection selection(doc, keep, out);
  selection.finish();
  // Values of ops that can't be run again are stored under the op's number.
  CopiedPaths moved;
  for (const auto& [path, target] : paths)
    if (const std::int32_t op = opaque_op(path);
        op != kNone && out.new_op[static_cast<std::size_t>(op)] != kNone)
      moved[path] =
          opaque_folder(out.new_op[static_cast<std::size_t>(op)]) + path.substr(opaque_folder(op).size());
  each_path(out.doc, [&](std::string& path) {
    if (const auto known = moved.find(path); known != moved.end())
      path = known->second;
    else if (const auto same = paths.find(path); same != paths.end())
      moved[path] = path;
  });
  for (const std::string& path : region_graph_paths(out.doc))
    if (paths.count(path) != 0) moved[path] = path;
  out.paths = std::move(moved);
  return out;
}

}  // namespace nanquest
