/// align: which op of one recorded step is which op of another.
///
/// Ops are matched by operator, module path, phase and the shapes of what they write, in order, with the
/// largest sum of scores (dynamic programming). Ops of the optimizer are matched parameter by parameter,
/// because two runs may update their parameters in different orders.
#pragma once

#include <string>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/trace/lockstep.h"

namespace nanquest::diff {

struct Alignment {
  std::vector<OpPair> pairs;       ///< in the order of b
  PerRow<OpRow, OpId> of_a, of_b;  ///< partner of each op in the other step; none if only one has it
  std::vector<OpId> only_a, only_b;

  /// Share of the ops that have a partner, of the step that has more: 0 to 1.
  double share() const;
};

/// Only ops that compute something count; views are matched too. Time: product of the numbers of ops, with
/// a band around the diagonal beyond 4,000 ops.
Alignment align(const TraceGraph& a, const TraceGraph& b);

/// The path without what wrappers add to it ("module.", "_orig_mod.").
std::string plain_path(std::string_view path);

/// For each op of the optimizer the parameter that it works for, by what it reads; "" elsewhere and where it
/// is not known.
std::vector<std::string> parameters_of_updates(const TraceGraph& graph);

}  // namespace nanquest::diff
