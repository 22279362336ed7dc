/// TraceGraph: a recorded step as a graph: which op wrote what and which reads it, in the order of execution.
///
///     const TraceGraph graph(doc);
///     for (const TensorId row : graph.reads(op))
///       if (const OpId maker = graph.producer(row, op)) say(graph.op(maker).name);
///
/// Built once from the tables and never changed; the doc must outlive it and keep its tables (statistics may
/// be added). The graph is valid for every doc: rows and ranges that point outside their tables are left out.
/// Storages are distinguished by element: two views of one storage without a common element are independent
/// (extent.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "probe/trace/extent.h"
#include "probe/trace/ids.h"
#include "probe/trace/names.h"

namespace nanquest {

/// True if the op neither reads nor writes an element: it only describes memory in a new way, like a view or
/// detach_.
bool computes_nothing(const OpRow& op);

/// The op's argument tokens; empty if the table points outside.
IdRange<ArgRow> tokens_of(const SnapshotDoc& doc, const OpRow& op);

class TraceGraph {
 public:
  /// A tensor among an op's arguments, and its argument (a list is one argument).
  struct Argument {
    TensorId row;
    std::int32_t position = 0;
  };
  /// One write of a storage: `row` is entry `entry` of the op's written range.
  struct Write {
    OpId op;
    std::int32_t entry = 0;
    TensorId row;
  };
  /// One read of a storage.
  struct Read {
    OpId op;
    TensorId row;
  };
  /// Result of a search back through writes.
  struct Search {
    bool ended = false;        ///< before it reached the start of the step
    bool passed_over = false;  ///< there are writes that later ones overwrote
  };
  /// Whether the op uses the values of its argument at `position`, according to its schema; nothing if not
  /// known.
  using TakesIn = std::function<std::optional<bool>(OpId op, std::int32_t position)>;

  /// If `takes_in` is empty or returns nothing, the operator's name decides (op_facts.h).
  explicit TraceGraph(const SnapshotDoc& doc, const TakesIn& takes_in = {});

  const SnapshotDoc& doc() const { return *doc_; }
  IdRange<OpRow> ops() const { return ids_of<OpRow>(*doc_); }
  /// One past the last op: "before the end".
  OpId end() const { return OpId{doc_->ops.size()}; }
  const OpRow& op(OpId id) const { return get(*doc_, id); }
  const TensorRow& tensor(TensorId id) const { return get(*doc_, id); }
  /// The row's storage; none for undefined tensors, for memory that is not plain, and for no row.
  SlotId slot(TensorId id) const;

  /// Tensor arguments in order, undefined ones included.
  std::span<const Argument> arguments(OpId op) const { return part(arguments_, first_argument_, op); }
  /// Those of them whose values the op uses: not memory that it overwrites completely, memory that was not
  /// written yet, or working memory of other ops.
  std::span<const TensorId> reads(OpId op) const { return part(reads_, first_read_, op); }
  /// Returned rows; empty if the table points outside.
  IdRange<TensorRow> outputs(OpId op) const;
  /// Rows that it wrote, for each entry of its written range; none if the table points outside, and for an op
  /// that writes nothing although its schema says so (detach_).
  std::span<const TensorId> written(OpId op) const { return part(written_, first_written_, op); }

  /// All writes of a storage, and all reads of its values, in order.
  const std::vector<Write>& writes(SlotId slot) const { return slot_writes_[slot]; }
  const std::vector<Read>& reads(SlotId slot) const { return slot_reads_[slot]; }

  /// Calls `f` with the writes that `row` may show just before op `before`, the latest first, until nothing
  /// older can be visible or `f` returns true. Writes that later ones overwrote are skipped.
  Search each_write_behind(TensorId row, OpId before, const std::function<bool(const Write&)>& f) const;
  /// The last op before `before` that wrote an element of the row; none if all came from outside.
  OpId producer(TensorId row, OpId before) const;
  /// Ops that use what `op` wrote, before other ops overwrote it; each once, in order.
  std::vector<OpId> consumers(OpId op) const;
  /// For a backward op the forward op that it differentiates: by its link, else the only forward op of its
  /// micro-batch before it with its sequence number; none if that is not known.
  OpId forward_of(OpId op) const;
  /// Module path of the op, else of its forward op; "" if unknown.
  std::string_view module_of(OpId op) const;

  /// Statistics of the row; null if it was not scanned.
  const StatsRow* stats(TensorId row) const;
  /// True if the row is known to hold a non-finite value.
  bool bad(TensorId row) const;
  /// Counts over all that the op wrote, and all that it used.
  BadCounts written_counts(OpId op) const { return counts(written(op)); }
  BadCounts read_counts(OpId op) const { return counts(reads(op)); }

 private:
  template <class T>
  std::span<const T> part(const std::vector<T>& all, const std::vector<std::uint32_t>& first, OpId op) const {
    return std::span(all).subspan(first[op.index()], first[op.index() + 1] - first[op.index()]);
  }
  void add_arguments(const OpRow& op);
  /// The number of arguments at the end that are memory for results (out=), whatever they hold.
  std::size_t out_arguments(OpId op, std::span<const Argument> arguments) const;
  void add_reads(OpId op, std::span<const Argument> arguments, const TakesIn& takes_in);
  void add_writes(OpId op);
  BadCounts counts(std::span<const TensorId> rows) const;

  /// A forward op by its sequence number.
  struct Sequenced {
    std::int32_t micro_batch;
    std::int64_t sequence;
    OpId op;
    friend auto operator<=>(const Sequenced&, const Sequenced&) = default;
  };

  const SnapshotDoc* doc_;
  std::vector<Argument> arguments_;
  std::vector<TensorId> reads_, written_;
  std::vector<std::uint32_t> first_argument_, first_read_, first_written_;  // per op, and one past the end
  PerRow<Slot, std::vector<Write>> slot_writes_;
  PerRow<Slot, std::vector<Read>> slot_reads_;
  PerRow<Slot, bool> unwritten_;        // memory with unwritten bytes, at the current op
  std::vector<Sequenced> forward_ops_;  // sorted
};

}  // namespace nanquest
