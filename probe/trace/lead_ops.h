/// lead_ops: ops of a trace that ran before its step, between the last update and the first forward pass.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "probe/snapshot/model.h"

namespace nanquest {

/// Key of SnapshotDoc::environment: how many ops of the trace, from the first, ran between the last update
/// and the step (probe/record/lead.h). Without it, what ran there is not on record.
inline constexpr const char* kLeadOps = "lead_ops";

/// How many ops of the trace, from the first, ran before the step; kNone: what ran there is not on record.
inline std::int32_t lead_ops(const SnapshotDoc& doc) {
  const auto found = doc.environment.find(kLeadOps);
  return found == doc.environment.end() ? kNone : std::atoi(found->second.c_str());
}

}  // namespace nanquest
