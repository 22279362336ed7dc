/// suspects: every place of a step where bad values appeared that reached harm.
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

/// A place where bad values appeared.
struct Suspect {
  friend bool operator==(const Suspect& a, const Suspect& b) { return a.op == b.op && a.row == b.row; }

  OpId op;            ///< that made them, or the first op to read `row`
  TensorId row = {};  ///< the outside value that held them; none if the op made them
  BadKinds kinds;     ///< the kinds that appeared here, without those that only pass through
  /// Its bad values were turned into finite ones before they could reach harm: an overflow that became zeros.
  bool hidden = false;
};

/// Sorts suspects into the order in which they are tried and named: what was bad before the step comes before
/// what the step made. An outside value without a name may have come from the step itself by way of the host
/// (a tensor made of numbers that were read from another): its position is where it is read.
void sort_by_time(const TraceGraph& graph, std::vector<Suspect>& suspects);

/// In the order of the step, all on a path to harm: bad outside values, ops with finite inputs and bad
/// results, and ops that made NaN from infinities; also overflows that were hidden on the way to the inputs
/// of one of those.
std::vector<Suspect> find_suspects(const TraceGraph& graph, const Walk& walk);

/// Ops that make bad values in a run with changes. They may differ from those of the recorded step, where
/// what one op did hides what a later one does too. `run` has statistics.
std::vector<Suspect> makers_in(const TraceGraph& graph, const RunResult& run);

/// True for the ops from which the row's values at the end of the step were computed.
PerRow<OpRow, bool> ancestors(const TraceGraph& graph, TensorId row);
/// … and for those from which `op` was computed, including itself.
PerRow<OpRow, bool> ancestors(const TraceGraph& graph, OpId op);

}  // namespace nanquest
