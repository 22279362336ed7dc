/// repeatable: which ops give the same bits whenever they run on the same inputs, and what else could explain
/// that one did not.
#pragma once

#include <functional>

#include "probe/trace/graph.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// True for an op of ATen whose result follows from its inputs alone, and which adds up in one order.
bool is_repeatable(const OpRow& op);

/// The op reads memory that may be written while it runs: a batch, or memory without a name.
bool reads_shared_memory(const TraceGraph& graph, OpId op);

/// The step up to `op`, with only that op computed another way: by another number of threads (`threads`), or
/// without oneDNN's kernels. `run` runs the step; its outputs are hashed.
RunResult computed_otherwise(const std::function<RunResult(const RunOptions&)>& run, OpId op, bool threads);

/// Whether what an op wrote in a run has the recorded hashes.
enum class Likeness { equal, other, unknown };
Likeness compared_with_recorded(const TraceGraph& graph, OpId op, const OpOutcome& outcome);

}  // namespace nanquest
