/// intended: was an infinity put in on purpose? Told by what becomes of it, not by who made it.
#pragma once

#include "replay/blame/suspects.h"
#include "replay/lab/lab.h"

namespace nanquest {

/// True if nothing has to be run to know it: a constant argument of its op says so, or it is an additive mask
/// from outside (below).
bool is_said_to_be_meant(const TraceGraph& graph, const Suspect& suspect);

/// True if the suspect holds infinities only, and
/// - a constant argument of its op says so, or
/// - it is an outside value of -Inf and one finite number alone (an additive mask; any other infinity from
///   outside is data that should not be there), or
/// - forward made something finite of them that counts for the loss: a result that is different when they are
///   replaced (softmax gives a masked entry the weight 0), or, where nothing that is finite depends on them,
///   a result that threw them away (where, max, a guard).
/// A range overflow is intended only in the last case: zeros that come of it are damage.
/// Runs the step up to twice.
bool is_intended(Lab& lab, const Suspect& suspect, const PerRow<OpRow, bool>& counts_for_loss);

}  // namespace nanquest
