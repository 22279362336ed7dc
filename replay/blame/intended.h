/// intended: was an infinity put in on purpose? Decided by how it is used, not by which op made it.
#pragma once

#include "replay/blame/suspects.h"
#include "replay/lab/lab.h"

namespace nanquest {

/// True if this is known without running anything: a constant argument of its op says so, or it is an
/// additive mask from outside (below).
bool is_said_to_be_meant(const TraceGraph& graph, const Suspect& suspect);

/// True if the suspect holds infinities only, none of which is finite one precision up, and
/// - a constant argument of its op says so, or
/// - it is an outside value of -Inf and one finite number only (an additive mask; any other infinity from
///   outside is data that should not be there), or
/// - the program selected something else in their place (where, a maximum, a clamp): no finite result depends
///   on them, or
/// - it is the logarithm of zero, and forward computed something finite from it that counts for the loss
///   (softmax gives such an entry the weight 0), and the harm comes not from its own derivative but from
///   other uses. Any other infinity that is used (1 / 0 in a tanh) is not intended, even if a function
///   saturates on it.
/// Runs the step up to three times.
bool is_intended(Lab& lab, const Suspect& suspect, const PerRow<OpRow, bool>& counts_for_loss);

}  // namespace nanquest
