/// select: a recorded step with only some of its operations.
///
///     const Selected part = select_ops(doc, needed_for(graph, roots), paths);
#pragma once

#include <vector>

#include "probe/trace/graph.h"
#include "replay/share/copy.h"

namespace nanquest {

/// Per op of the graph: whether it is needed to compute the rows of `roots` as they are at the end of the
/// step, or is one of `ops`: everything that wrote their inputs, or allocated the memory, and the forward ops
/// that they differentiate.
std::vector<bool> needed_for(const TraceGraph& graph, const std::vector<std::int32_t>& roots,
                             const std::vector<std::int32_t>& ops);

/// The step with only the kept ops and what these need.
struct Selected {
  SnapshotDoc doc;
  CopiedPaths paths;                 ///< old path to new; without what is no longer read
  std::vector<std::int32_t> new_op;  ///< per old op; kNone for those that are removed
};

/// `keep`: per op. Rows of other tables without a reference are removed too, and so are weights, states and
/// batch tensors that no op uses. Loss and gradients that the kept ops don't make are removed.
Selected select_ops(const SnapshotDoc& doc, const std::vector<bool>& keep, const CopiedPaths& paths);

}  // namespace nanquest
