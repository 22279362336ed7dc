/// replicas: weights that the ranks of one step should hold alike (their files say so), and what it means if
/// only one rank is bad.
#pragma once

#include <optional>
#include <vector>

#include "replay/cause/ranks.h"
#include "replay/trace/replayer.h"
#include "replay/verdict/together.h"

namespace nanquest {

/// One rank's file of the step, and what is known of it. All must outlive the calls.
struct ReplicaRank {
  const Replayer* replayer = nullptr;
  const RankPart* part = nullptr;
  const VerifyResult* verified = nullptr;
};

/// Compares the weights of all files that name each other (kReplicasKey), bit for bit as they were when the
/// step began. Nothing unless there are two such files and a weight that all of them hold.
std::optional<ReplicasInfo> compare_replicas(const std::vector<ReplicaRank>& ranks);

/// Why only `first` (null: no rank was to blame) is bad. Nothing unless it is proved: by weights that only
/// this rank has; or by its first operation that does not come back, if that was recorded with bad values,
/// gives in the replay what a healthy rank recorded there, and everything before it came back.
std::optional<AloneInfo> why_alone(const std::vector<ReplicaRank>& ranks, const RankPart* first,
                                   const std::optional<ReplicasInfo>& replicas);

}  // namespace nanquest
