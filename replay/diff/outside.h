/// outside: what both steps read from outside: which value of one is which of the other, and which differ.
#pragma once

#include <string>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/diff/align.h"
#include "replay/diff/edits.h"
#include "replay/diff/rounding.h"

namespace nanquest::diff {

/// A value at the start of the step that differs.
struct OutsideDifference {
  std::string name;
  bool batch = false;  ///< it came with the batch; otherwise it persists from step to step
  Apart apart;
  at::ScalarType a = at::kFloat, b = at::kFloat;
  /// The elements of a storage, and their value.
  struct Elements {
    SlotId slot;  ///< none if the step does not use it, or the other's value does not fit there
    TensorRow row;
    at::Tensor value;
  };
  Elements in_a, in_b;
};

struct Outside {
  std::vector<OutsideDifference> differ;    ///< batch first, then in the order of the file
  std::vector<std::string> only_a, only_b;  ///< names of parameters, buffers and states that one has
};

/// Named values are matched by name, others by the op that first reads them. Numbers in the program's
/// expressions are not among them (constants.h). A gradient from before the step counts as state.
Outside compare_outside(const Replayer& a, const TraceGraph& graph_a, const Replayer& b,
                        const TraceGraph& graph_b, const Alignment& alignment);

}  // namespace nanquest::diff
