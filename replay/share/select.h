/// select: a recorded step with some of its operations alone.
///
///     const Selected part = select_ops(doc, needed_for(graph, roots), paths);
#pragma once

#include <vector>

#include "probe/trace/graph.h"
#include "replay/share/copy.h"

namespace nanquest {

/// Per op of the graph: whether it is needed to compute the rows of `roots` as they are at the end of the
/// step, or is one of `ops`: all that wrote what they read, or made the memory, and the forward ops that they
/// differentiate.
std::vector<bool> needed_for(const TraceGraph& graph, const std::vector<std::int32_t>& roots,
                             const std::vector<std::int32_t>& ops);

/// The step of the ops that are kept, without what they alone don't need.
struct Selected {
  SnapshotDoc doc;
  CopiedPaths paths;                 ///< old path to new; without what nothing reads any more
  std::vector<std::int32_t> new_op;  ///< per old op; kNone for those that are gone
};

/// `keep`: per op. Rows of other tables that nothing refers to go too, and so do weights, states and batch
/// tensors that no op touches. Loss and gradients that the kept ops don't make are no more.
Selected select_ops(const SnapshotDoc& doc, const std::vector<bool>& keep, const CopiedPaths& paths);

}  // namespace nanquest
