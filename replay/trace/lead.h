/// lead: ops that ran before the step, held against what the step found (probe/trace/lead_ops.h).
#pragma once

#include <optional>

#include "replay/trace/replayer.h"

namespace nanquest::trace {

/// The tables without these ops, if something that is not on record (the host) made the bad values: run
/// again, the ops leave finite numbers in memory that was bad when the step first read it. The memory is a
/// value from outside then, and holds what the step found. Nothing if these ops made them, or there are none.
/// Runs these ops once. Never throws.
std::optional<SnapshotDoc> without_refuted_lead(const Replayer::Impl& impl);

}  // namespace nanquest::trace
