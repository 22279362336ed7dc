/// regions: a step that torch.compile compiled against the same step run operator by operator. A region is
/// one op of its record; the file holds the graph that was compiled, whose operators are run one by one on
/// what the region was given (opened_region.h).
#pragma once

#include <optional>

#include "replay/diff/differ.h"

namespace nanquest::diff {

/// Where the values part inside regions of the forward pass: the first op of `eager` whose value no
/// operator of the regions has, and no value of an op after it in the regions' modules either. Values that
/// fusing left out do not count, because later ones are there. The finding's `a` is the op of `eager`, its
/// `b` the region. Nothing if there are no regions in the forward pass of `compiled` alone, if their graphs
/// are not in the file or draw random numbers, or if the values are there. Throws what a run throws.
std::optional<Finding> look_into_regions(const Replayer& eager, const Replayer& compiled,
                                         const Settings& settings);

}  // namespace nanquest::diff
