/// lead_ops: ops of a trace that ran before its step, between the last update and the first forward pass.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "probe/snapshot/model.h"

namespace nanquest {

/// Key of SnapshotDoc::environment: how many ops of the trace, from the first, ran between the last update
/// and the step (probe/record/lead.h). Without it, what ran there is not on record.
inline constexpr const char* kLeadOps = "lead_ops";

/// Key of SnapshotDoc::environment: where the file keeps what the step found in memory that these ops write
/// to: "12 slot_data/00012;14 slot_data/00014", by slot. Replay computes it anew; if that comes out
/// otherwise, something not on record wrote there.
inline constexpr const char* kLeadFound = "lead_found";

/// How many ops of the trace, from the first, ran before the step; kNone: what ran there is not on record.
inline std::int32_t lead_ops(const SnapshotDoc& doc) {
  const auto found = doc.environment.find(kLeadOps);
  return found == doc.environment.end() ? kNone : std::atoi(found->second.c_str());
}

}  // namespace nanquest
