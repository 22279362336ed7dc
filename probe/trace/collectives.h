/// What the schemas of collectives don't say: which tensors they write, and that they write them later.
#pragma once

#include <string_view>

namespace nanquest {

/// An operator that talks to other processes: "c10d::allreduce_", "_c10d_functional::all_reduce", …. What it
/// writes is there when somebody has waited for it, not when it returns.
bool is_collective(std::string_view op);

/// A collective that gives every rank what each of them gave.
bool gathers(std::string_view op);

/// A collective whose first argument's tensors are written (all but sends and barriers).
bool collective_writes(std::string_view op);

/// … and not read before: the outputs of a gather, what is received.
bool collective_overwrites(std::string_view op);

/// What stands in a file (ArgRow::text) for c10d's objects, before the reduction's word ("sum") and the
/// group's name. Files of before say only that it is an object.
inline constexpr std::string_view kReduceOpText = "c10d::ReduceOp ",
                                  kProcessGroupText = "c10d::ProcessGroup ";
/// Key of SnapshotDoc::environment, before the group's name; its value is the global ranks, "0 2".
inline constexpr std::string_view kProcessGroupKey = "process_group.";

/// Keys of SnapshotDoc::environment: the global ranks that should hold the weights alike, "0 1 2", as
/// DistributedDataParallel makes them; and the names of those weights that it leaves alone, one a line.
inline constexpr const char *kReplicasKey = "replicas", *kReplicasButKey = "replicas.but";

/// An operator that waits for a collective: its argument must not be looked at before.
bool awaits_collective(std::string_view op);

}  // namespace nanquest
