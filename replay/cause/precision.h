/// precision: is the failure a matter of number formats? The whole step in wider ones, and what grew before
/// it.
#pragma once

#include <set>
#include <string>

#include "replay/cause/cause.h"

namespace nanquest {

/// Layers whose parameters were read neither by `op` nor by the ops from which it was computed.
std::set<std::string> layers_aside(const TraceGraph& graph, OpId op);

/// Fills `v.precision`, and says in explanation, advice and what was not tested what it means; growth and ops
/// that could not run in another format become evidence. `not_computed`: the culprit's bad values came from
/// no arithmetic (Finding). Runs the step in fp32 and fp64, if that was not done yet.
void judge_precision(const Case& c, bool not_computed, Verdict& v);

}  // namespace nanquest
