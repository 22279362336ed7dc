/// walk: from harm back to where it came from, through bad values only.
#pragma once

#include <vector>

#include "probe/trace/graph.h"

namespace nanquest {

/// Where bad values that did harm came from.
struct Root {
  OpId op;       ///< the birth, or the first op that read a bad outside value
  TensorId row;  ///< the bad outside value, none for a birth
};

/// The ops that carried bad values to the harm: a non-finite loss, gradient, or update of a parameter or
/// optimizer state.
class Walk {
 public:
  /// Walks back from all harm of the doc. The graph outlives the walk.
  explicit Walk(const TraceGraph& graph);

  const std::vector<Root>& roots() const { return roots_; }
  /// True if bad values of the op did harm.
  bool reached(OpId op) const { return reached_[op]; }
  /// The op that carried them on, none where they did the harm.
  OpId next(OpId op) const { return next_[op]; }
  /// Ops from `from` to the harm, in order; `from` alone if it did none.
  std::vector<OpId> path_to_harm(OpId from) const;

 private:
  void visit(OpId op, OpId towards);
  bool visit_writers(TensorId row, OpId before, OpId towards);
  void drain();
  void look_into(OpId op);

  const TraceGraph& graph_;
  std::vector<Root> roots_;
  PerRow<OpRow, bool> reached_;
  PerRow<OpRow, OpId> next_;
  std::vector<OpId> queue_;  // in the order of visits
  std::size_t drained_ = 0;
  /// A row whose bad writers from op `since` (none: from the start) up to op `before` are all visited.
  struct Seen {
    TensorId row;
    OpId since, before;
  };
  PerRow<Slot, Seen> seen_;
};

/// True for infinities that somebody wrote down: a constant argument, or a mask of -inf handed in from
/// outside.
bool is_intended(const TraceGraph& graph, const Root& root);

/// An infinity was meant: the op that turned it into harm, looking from its source towards the harm. `path`
/// is not empty.
OpId first_harmful(const TraceGraph& graph, const std::vector<OpId>& path, bool source_is_op);

}  // namespace nanquest
