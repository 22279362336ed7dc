#include "probe/trace/graph.h"

#include <algorithm>
#include <cmath>

#include "probe/trace/births.h"
#include "probe/trace/op_facts.h"

namespace nanquest {
namespace {

/// Rows [first, first + count) of a table with `size` rows; empty if not all of them exist.
template <class Row>
IdRange<Row> range_in(std::int64_t first, std::int64_t count, std::size_t size) {
  const bool good = first >= 0 && count >= 0 && static_cast<std::uint64_t>(first + count) <= size;
  return IdRange<Row>(Id<Row>{good ? first : 0}, Id<Row>{good ? first + count : 0});
}

}  // namespace

IdRange<ArgRow> tokens_of(const SnapshotDoc& doc, const OpRow& op) {
  return range_in<ArgRow>(op.first_arg, op.arg_count, doc.args.size());
}

TraceGraph::TraceGraph(const SnapshotDoc& doc, const TakesIn& takes_in)
    : doc_(&doc),
      slot_writes_(doc.slots.size()),
      slot_reads_(doc.slots.size()),
      unwritten_(doc.slots.size(), false) {
  arguments_.reserve(doc.args.size());
  reads_.reserve(doc.args.size());
  written_.reserve(doc.written.size());
  for (const OpId id : ops()) {
    first_argument_.push_back(static_cast<std::uint32_t>(arguments_.size()));
    first_read_.push_back(static_cast<std::uint32_t>(reads_.size()));
    first_written_.push_back(static_cast<std::uint32_t>(written_.size()));
    const std::size_t first = arguments_.size();
    add_arguments(op(id));
    add_reads(id, std::span(arguments_).subspan(first), takes_in);
    add_writes(id);
    if (op(id).phase == Phase::forward && op(id).sequence >= 0)
      forward_ops_.push_back({op(id).micro_batch, op(id).sequence, id});
  }
  first_argument_.push_back(static_cast<std::uint32_t>(arguments_.size()));
  first_read_.push_back(static_cast<std::uint32_t>(reads_.size()));
  first_written_.push_back(static_cast<std::uint32_t>(written_.size()));
  std::sort(forward_ops_.begin(), forward_ops_.end());
}

void TraceGraph::add_arguments(const OpRow& op) {
  std::int32_t position = 0;
  std::int64_t expected = 1;  // values until the argument is complete
  for (const ArgId id : tokens_of(*doc_, op)) {
    const ArgRow& token = get(*doc_, id);
    if (token.kind == ArgKind::tensor && find_row(*doc_, TensorId{token.tensor}))
      arguments_.push_back({TensorId{token.tensor}, position});
    --expected;
    if (token.kind == ArgKind::list) expected += std::clamp<std::int64_t>(token.integer, 0, op.arg_count);
    if (expected > 0) continue;
    expected = 1;
    ++position;
  }
}

std::size_t TraceGraph::out_arguments(OpId id, std::span<const Argument> arguments) const {
  const OpRow& row = op(id);
  if (row.overload != "out" && !row.overload.ends_with("_out")) return 0;
  // They come last, in the order of the returned values.
  const auto returned = outputs(id);
  if (returned.size() > arguments.size()) return 0;
  std::size_t at = arguments.size() - returned.size();
  for (const TensorId output : returned) {
    const TensorId given = arguments[at++].row;
    if (!slot(given) || slot(given) != slot(output)) return 0;
  }
  return returned.size();
}

void TraceGraph::add_reads(OpId id, std::span<const Argument> arguments, const TakesIn& takes_in) {
  const std::string& name = op(id).name;
  const std::size_t outs = out_arguments(id, arguments);
  for (const Argument& argument : arguments.first(arguments.size() - outs)) {
    const SlotId storage = slot(argument.row);
    if (!storage) continue;
    const auto position = static_cast<std::size_t>(argument.position);
    const bool blind = position == 0 && overwrites_blindly(name);
    const std::optional<bool> told = takes_in ? takes_in(id, argument.position) : std::nullopt;
    const bool taken =
        told.value_or(argument_use(name, {"", position, /*mutated=*/blind, /*out=*/false}).read);
    if (!taken || unwritten_[storage]) continue;
    reads_.push_back(argument.row);
    slot_reads_[storage].push_back({id, argument.row});
  }
}

void TraceGraph::add_writes(OpId id) {
  const OpRow& row = op(id);
  std::int32_t entry = 0;
  for (const auto at : range_in<std::int32_t>(row.first_written, row.written_count, doc_->written.size())) {
    const TensorId written{doc_->written[at.index()]};
    const SlotId storage = slot(written);
    const bool wrote = storage && !changes_metadata_only(row.name);
    written_.push_back(wrote ? written : TensorId{});
    if (wrote) {
      slot_writes_[storage].push_back({id, entry, written});
      unwritten_[storage] = (row.flags & kOpUninitialised) != 0;
    }
    ++entry;
  }
  std::size_t output = 0;
  for (const TensorId at : outputs(id))
    if (const SlotId storage = slot(at); is_scratch(row.name, output++) && storage)
      unwritten_[storage] = true;
}

IdRange<TensorRow> TraceGraph::outputs(OpId id) const {
  return range_in<TensorRow>(op(id).first_output, op(id).output_count, doc_->tensors.size());
}

bool computes_nothing(const OpRow& op) {
  return (op.flags & kOpViewOnly) || changes_metadata_only(op.name);
}

SlotId TraceGraph::slot(TensorId id) const {
  const TensorRow* row = find_row(*doc_, id);
  if (!row || (row->flags & (kTensorUndefined | kTensorOpaque))) return {};
  return find_row(*doc_, SlotId{row->slot}) ? SlotId{row->slot} : SlotId{};
}

TraceGraph::Search TraceGraph::each_write_behind(TensorId row, OpId before,
                                                 const std::function<bool(const Write&)>& f) const {
  Search search;
  const SlotId storage = slot(row);
  if (!storage) return search;
  const std::vector<Write>& all = slot_writes_[storage];
  const auto end = std::lower_bound(all.begin(), all.end(), before,
                                    [](const Write& write, OpId limit) { return write.op < limit; });
  std::optional<Overwritten> later;
  for (auto it = std::make_reverse_iterator(end); it != all.rend() && !search.ended; ++it) {
    const TensorRow& write = tensor(it->row);
    const bool same = same_view(write, tensor(row));  // true for most reads
    if (!same && !may_overlap(write, tensor(row))) continue;
    if (later && !later->add(write)) {
      search.passed_over = true;
      continue;
    }
    search.ended = f(*it) || same || covers(write, tensor(row)) || (later && later->complete());
    if (later || search.ended) continue;
    later.emplace(tensor(row));
    (void)later->add(write);
  }
  return search;
}

OpId TraceGraph::producer(TensorId row, OpId before) const {
  OpId found;
  (void)each_write_behind(row, before, [&](const Write& write) {
    found = write.op;
    return true;
  });
  return found;
}

std::vector<OpId> TraceGraph::consumers(OpId id) const {
  std::vector<OpId> found;
  for (const TensorId row : written(id)) {
    if (!row) continue;
    const std::vector<Write>& writes = slot_writes_[slot(row)];
    const auto over = std::find_if(writes.begin(), writes.end(), [&](const Write& write) {
      return write.op > id && covers(tensor(write.row), tensor(row));
    });
    const OpId last = over == writes.end() ? end() : over->op;
    for (const Read& read : slot_reads_[slot(row)])
      if (read.op > id && read.op <= last && may_overlap(tensor(read.row), tensor(row)))
        found.push_back(read.op);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

OpId TraceGraph::forward_of(OpId id) const {
  const OpRow& row = op(id);
  if (find_row(*doc_, OpId{row.forward_op})) return OpId{row.forward_op};
  if (row.phase != Phase::backward || row.sequence < 0) return {};
  const Sequenced wanted{row.micro_batch, row.sequence, OpId{}};  // no op comes before every other
  const auto found = std::lower_bound(forward_ops_.begin(), forward_ops_.end(), wanted);
  const auto matches = [&](auto it) {
    return it != forward_ops_.end() && it->micro_batch == row.micro_batch && it->sequence == row.sequence &&
           it->op < id;
  };
  // Sequence numbers are not unique: two candidates decide nothing.
  return matches(found) && !matches(found + 1) ? found->op : OpId{};
}

std::string_view TraceGraph::module_of(OpId id) const {
  const ModuleRow* module = find_row(*doc_, ModuleId{op(id).module});
  if (!module)
    if (const OpId forward = forward_of(id)) module = find_row(*doc_, ModuleId{op(forward).module});
  return module ? std::string_view(module->path) : std::string_view();
}

const StatsRow* TraceGraph::stats(TensorId row) const {
  const TensorRow* found = find_row(*doc_, row);
  return found ? find_row(*doc_, StatsId{found->stats}) : nullptr;
}

bool TraceGraph::bad(TensorId row) const {
  const StatsRow* found = stats(row);
  return found && found->non_finite() > 0;
}

BadCounts TraceGraph::counts(std::span<const TensorId> rows) const {
  BadCounts sum;
  for (const TensorId row : rows)
    if (const StatsRow* found = stats(row)) sum += *found;
  return sum;
}

BadConstants bad_constants(const SnapshotDoc& doc, OpId op) {
  BadConstants found;
  const OpRow& row = get(doc, op);
  for (const ArgId id : tokens_of(doc, row)) {
    const ArgRow& token = get(doc, id);
    if (token.kind != ArgKind::real) continue;
    found.nan = found.nan || std::isnan(token.real);
    found.infinite = found.infinite || std::isinf(token.real);
  }
  return found;
}

bool are_meant_by_constant(const SnapshotDoc& doc, OpId op) {
  const OpRow& row = get(doc, op);
  return row.phase != Phase::optimizer && !(row.flags & kOpBirthFiniteAbove) &&
         bad_constants(doc, op).infinite;
}

}  // namespace nanquest
