/// statistics: computes those of a trace that was recorded without any.
///
/// A standing trace keeps what a step read from outside and the order of its ops, but looks at no values.
/// Replay computes them: one run as recorded gives every tensor row its statistics, and each op that made
/// non-finite values from finite ones is computed one precision up on the same inputs. Then find_culprit
/// works as on a watched step.
#pragma once

#include "probe/snapshot/model.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// True if the trace has ops that wrote something and no statistics of what they wrote; for a standing trace
/// (basis "survivors") also if it has those of survivors only.
bool lacks_statistics(const SnapshotDoc& doc);

/// The doc with statistics and hashes of every argument and written output, and the birth flags of its ops,
/// as record_step would have filled them. Statistics that were recorded with a hash stay. At most 64 births
/// are judged, the most relevant first. Ops that can't be run leave no statistics; an invalid doc comes back
/// unchanged. Runs the step once, and up to the last birth a second time; the same rules as Replayer::run.
/// Never throws.
SnapshotDoc fill_statistics(const Replayer& replayer);

}  // namespace nanquest
