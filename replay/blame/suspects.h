/// suspects: every place of a step where bad values came up that reached harm.
#pragma once

#include <utility>
#include <vector>

#include "probe/trace/walk.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// Kinds of bad values.
struct BadKinds {
  bool nan = false, infinite = false;
  bool any() const { return nan || infinite; }
};

/// A place where bad values came up.
struct Suspect {
  friend bool operator==(const Suspect& a, const Suspect& b) { return a.op == b.op && a.row == b.row; }

  OpId op;            ///< that made them, or the first to read `row`
  TensorId row = {};  ///< the outside value that held them; none if the op made them
  BadKinds kinds;     ///< what came up here; what only passes through is not its doing
  /// Its bad values were turned into finite ones before they could reach harm: an overflow that made zeros.
  bool hidden = false;
};

/// Sorts suspects into the order in which they are tried and named: what was bad before the step comes before
/// anything that it made. A value from outside that has no name may have come out of the step itself, by way
/// of the host (a tensor made of numbers that were read from another): it comes when it is read.
void sort_by_time(const TraceGraph& graph, std::vector<Suspect>& suspects);

/// In the order of the step: bad outside values, ops with finite inputs and bad results, and ops that made
/// NaN out of infinities, all of them on a way to harm; and overflows that were hidden on the way to the
/// inputs of one of those.
std::vector<Suspect> find_suspects(const TraceGraph& graph, const Walk& walk);

/// Ops that make bad values in a run, which may have been changed: others than in the step as recorded, where
/// what one op did hides what a later one does too. `run` has statistics.
std::vector<Suspect> makers_in(const TraceGraph& graph, const RunResult& run);

/// True for the ops that the row's values at the end of the step were computed by.
PerRow<OpRow, bool> ancestors(const TraceGraph& graph, TensorId row);
/// … and for those that `op` is made of, itself among them.
PerRow<OpRow, bool> ancestors(const TraceGraph& graph, OpId op);

}  // namespace nanquest
