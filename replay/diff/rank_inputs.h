/// rank_inputs: what a step on one rank and the ranks of the other step were given.
#pragma once

#include <cstdint>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/diff/report.h"
#include "replay/trace/replayer.h"

namespace nanquest::diff {

struct Given {
  std::vector<Finding> differ;  ///< the batch, the state: where the ranks' values do not make up the one's
  std::int64_t samples = 0;     ///< of a rank, where the batch is divided; 0: it is not, or not known
};

/// By name, to the bit.
Given compare_given(const Replayer& one, const std::vector<Replayer>& ranks);

}  // namespace nanquest::diff
