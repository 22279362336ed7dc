/// phases: which ops of a step are the optimizer's, by what they read and write, whoever wrote them.
///
///     settle_phases(doc);   // a recording is complete, or a file was opened that may be older than this rule
///
/// Backward is what runs inside the backward pass, and a recorder sees that. Forward and optimizer are told
/// apart by data: once gradients are there, what reads them or what was made from them, and what writes
/// weights, gradients or the optimizer's own state, is the optimizer's (unscaling, norms, clips, accumulation,
/// updates, averages of weights), and so is what only feeds that (noise, coefficients). What goes into a later
/// forward pass or into its loss is not (a gradient penalty, an adversarial input, the next micro-batch), nor
/// is what reads neither (metrics).
#pragma once

#include "probe/snapshot/model.h"

namespace nanquest {

/// Sets `phase` of the doc's ops by that rule. Ops that somebody declared to be the optimizer's stay so, but
/// for a differentiable forward pass inside an update (a closure). Marks old gradients as well (origins.h). True
/// if that changed anything; a second call changes nothing.
bool settle_phases(SnapshotDoc& doc);

}  // namespace nanquest
