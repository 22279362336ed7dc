/// walk: from harm back to its origin, through bad values only.
///
/// Kinds of bad values are distinguished. A NaN comes from a NaN (or from +Inf in the same tensor), and from
/// any infinity only if no input is NaN. An infinity comes from infinities of its sign, else of the other
/// sign. So a mask of -Inf beside a NaN is not on the path.
#pragma once

#include <cstdint>
#include <vector>

#include "probe/trace/graph.h"

namespace nanquest {

/// A set of kinds of bad values.
using ValueKinds = std::uint8_t;
inline constexpr ValueKinds kKindNan = 1, kKindPosInf = 2, kKindNegInf = 4,
                            kKindInf = kKindPosInf | kKindNegInf, kEveryKind = 7;
/// The kinds with a non-zero count, and the counts of only these kinds.
ValueKinds value_kinds(const BadCounts& counts);
BadCounts of_kinds(const BadCounts& counts, ValueKinds kinds);

/// The origin of bad values that did harm.
struct Root {
  OpId op;                        ///< the birth, or the first op that read a bad outside value
  TensorId row;                   ///< the bad outside value as `op` read it, none for a birth
  ValueKinds kinds = kEveryKind;  ///< those of its kinds that did harm
};

/// The ops that carried bad values to the harm: a non-finite loss, gradient, or update of a parameter or
/// optimizer state; a buffer or other persistent memory that the step made bad.
class Walk {
 public:
  /// Walks back from all harm of the doc. The graph must outlive the walk.
  explicit Walk(const TraceGraph& graph);

  const std::vector<Root>& roots() const { return roots_; }
  /// True if bad values of the op did harm.
  bool reached(OpId op) const { return reached_[op] != 0; }
  /// … and which kinds of them.
  ValueKinds harm(OpId op) const { return reached_[op]; }
  /// The next op on the path, none if this op did the harm.
  OpId next(OpId op) const { return next_[op]; }
  /// True if all harm of the op is in persistent memory that it wrote: an infinity there may be intended.
  bool only_left(OpId op) const { return left_[op]; }
  /// Ops from `from` to the harm, in order; `from` alone if it did none.
  std::vector<OpId> path_to_harm(OpId from) const;

 private:
  /// Kinds of bad values of an op.
  struct Visit {
    OpId op;
    ValueKinds kinds;
  };
  void visit(OpId op, OpId towards, ValueKinds kinds);
  bool visit_writers(TensorId row, OpId before, OpId towards, ValueKinds kinds);
  void drain();
  void look_into(const Visit& visit);
  void visit_writer(OpId writer, TensorId row, OpId towards, ValueKinds kinds);
  bool follow(OpId op, ValueKinds in, ValueKinds from);
  void visit_what_was_left(SlotId slot);
  void add_root(const Root& root);

  const TraceGraph& graph_;
  std::vector<Root> roots_;
  PerRow<OpRow, ValueKinds> reached_;
  PerRow<OpRow, OpId> next_;
  PerRow<OpRow, bool> left_;
  std::vector<Visit> queue_;  // in the order of visits
  std::size_t drained_ = 0;
  /// A row whose bad writers from op `since` (none: from the start) up to op `before` were all visited for
  /// `kinds`.
  struct Seen {
    TensorId row;
    OpId since, before;
    ValueKinds kinds = 0;
  };
  PerRow<Slot, Seen> seen_;
};

/// True if the bad value is bytes that the host wrote without the dispatcher.
bool is_host_written(const TraceGraph& graph, const Root& root);

/// True for infinities that the program wrote: a constant argument, or a mask of -inf from outside.
bool is_intended(const TraceGraph& graph, const Root& root);

/// For an intended infinity: the op that turned it into harm, from its origin towards the harm; none if no op
/// did. `path` is not empty.
OpId first_harmful(const TraceGraph& graph, const std::vector<OpId>& path, bool source_is_op);

}  // namespace nanquest
