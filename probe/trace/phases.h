/// phases: which ops of a step are the optimizer's, by the data that they read and write.
///
///     settle_phases(doc);   // a recording is complete, or a file was opened that may be older than this rule
///
/// Backward is what runs inside the backward pass; the recorder sees that. Forward and optimizer are
/// distinguished by data. Once gradients exist, these ops are the optimizer's: ops that read gradients or
/// values computed from them, ops that write weights, gradients or the optimizer's own state (unscaling,
/// norms, clips, accumulation, updates, averages of weights), and ops that only feed those (noise,
/// coefficients). Not the optimizer's are ops whose results go into a later forward pass or its loss (a
/// gradient penalty, an adversarial input, the next micro-batch), and ops that read neither (metrics).
#pragma once

#include "probe/snapshot/model.h"

namespace nanquest {

/// Sets `phase` of the doc's ops by that rule. Ops that were declared to be the optimizer's stay so, except
/// for a differentiable forward pass inside an update (a closure). Also marks old gradients (origins.h). True
/// if anything changed; a second call changes nothing.
bool settle_phases(SnapshotDoc& doc);

}  // namespace nanquest
