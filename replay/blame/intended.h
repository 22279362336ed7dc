/// intended: was an infinity put in on purpose? Told by what becomes of it, not by who made it.
#pragma once

#include "replay/blame/suspects.h"
#include "replay/lab/lab.h"

namespace nanquest {

/// True if nothing has to be run to know it: a constant argument of its op says so, or it is an additive mask
/// from outside (below).
bool is_said_to_be_meant(const TraceGraph& graph, const Suspect& suspect);

/// True if the suspect holds infinities only, none of which is finite one precision up, and
/// - a constant argument of its op says so, or
/// - it is an outside value of -Inf and one finite number alone (an additive mask; any other infinity from
///   outside is data that should not be there), or
/// - the program chose something else in their place (where, a maximum, a clamp): nothing that is finite
/// hangs
///   on them, or
/// - it is the logarithm of zero, and forward made something finite of it that counts for the loss (softmax
/// gives
///   such an entry the weight 0), and not its own derivative but what others do with it is harmful. Any other
///   infinity that is used (1 / 0 in a tanh) is nobody's intention, whatever saturates on it.
/// Runs the step up to three times.
bool is_intended(Lab& lab, const Suspect& suspect, const PerRow<OpRow, bool>& counts_for_loss);

}  // namespace nanquest
