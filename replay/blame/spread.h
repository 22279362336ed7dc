/// spread: where infinities that were put in among finite numbers stop being a matter of their own elements.
#pragma once

#include <vector>

#include "probe/trace/graph.h"

namespace nanquest {

/// Infinities stay where they are for a while after `root` put them in (log-probabilities of classes that are
/// masked), until an op spreads them (a sum over all classes). The ops of the same phase that hand them on
/// element by element, in order; none where the op that spreads them picks by an index: then it is the index
/// that asks for what is masked. `graph` has statistics.
std::vector<OpId> handed_on_by(const TraceGraph& graph, OpId root);

}  // namespace nanquest
