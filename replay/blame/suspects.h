/// suspects: every place of a step where bad values came up that reached harm.
#pragma once

#include <vector>

#include "probe/trace/walk.h"

namespace nanquest {

/// Kinds of bad values.
struct BadKinds {
  bool nan = false, infinite = false;
  bool any() const { return nan || infinite; }
};

/// A place where bad values came up.
struct Suspect {
  OpId op;            ///< that made them, or the first to read `row`
  TensorId row = {};  ///< the outside value that held them; none if the op made them
  BadKinds kinds;     ///< what came up here; what only passes through is not its doing
  /// Its bad values were turned into finite ones before they could reach harm: an overflow that made zeros.
  bool hidden = false;
};

/// In the order of the step: bad outside values, ops with finite inputs and bad results, and ops that made NaN
/// out of infinities, all of them on a way to harm; and overflows that were hidden on the way to the inputs of
/// one of those.
std::vector<Suspect> find_suspects(const TraceGraph& graph, const Walk& walk);

/// True for the ops that the row's values at the end of the step were computed by.
PerRow<OpRow, bool> ancestors(const TraceGraph& graph, TensorId row);

}  // namespace nanquest
