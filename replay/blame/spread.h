/// spread: where intended infinities among finite numbers begin to affect other elements.
#pragma once

#include <vector>

#include "probe/trace/graph.h"

namespace nanquest {

/// Infinities stay in their elements for a while after `root` put them in (log-probabilities of masked
/// classes), until an op spreads them (a sum over all classes). Returns the ops of the same phase that pass
/// them on element by element, in order; none if the op that spreads them selects by an index: then the index
/// selects what is masked. `graph` has statistics.
std::vector<OpId> handed_on_by(const TraceGraph& graph, OpId root);

}  // namespace nanquest
