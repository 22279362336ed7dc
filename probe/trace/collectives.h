/// What the schemas of collectives do not contain: which tensors they write, and that they write them later.
#pragma once

#include <string_view>

namespace nanquest {

/// An operator that communicates with other processes: "c10d::allreduce_", "_c10d_functional::all_reduce", ….
/// Its result is there after a wait, not when it returns.
bool is_collective(std::string_view op);

/// A collective that gives every rank the inputs of all ranks.
bool gathers(std::string_view op);

/// A collective whose first argument's tensors are written (all but sends and barriers).
bool collective_writes(std::string_view op);

/// … and not read before: the outputs of a gather, received tensors.
bool collective_overwrites(std::string_view op);

/// Prefixes of ArgRow::text for c10d's objects, before the reduction's word ("sum") and the group's name.
/// Older files contain only the object's type.
inline constexpr std::string_view kReduceOpText = "c10d::ReduceOp ",
                                  kProcessGroupText = "c10d::ProcessGroup ";
/// Key of SnapshotDoc::environment, before the group's name; its value is the global ranks, "0 2".
inline constexpr std::string_view kProcessGroupKey = "process_group.";

/// Keys of SnapshotDoc::environment: the global ranks that should hold equal weights, "0 1 2", because
/// DistributedDataParallel makes them equal; and the names of the weights that it ignores, one per line.
inline constexpr const char *kReplicasKey = "replicas", *kReplicasButKey = "replicas.but";

/// An operator that waits for a collective: its argument must not be read before.
bool awaits_collective(std::string_view op);

}  // namespace nanquest
