/// opened_region: the operators of a compiled region, run one by one on its inputs and recorded like a step;
/// and how their results compare with those of the compiled code.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "probe/record/record.h"
#include "probe/trace/regions.h"
#include "replay/case/case.h"
#include "replay/lab/region_graph.h"

namespace nanquest {

/// The results of one run of the region's operators on its recorded inputs.
struct OpenedRegion {
  Recording recording;
  std::vector<at::Tensor> outputs;   ///< one per recorded output, without intended infinities
  std::vector<at::Tensor> recorded;  ///< the results of the compiled region, likewise
  std::set<std::string> stood_in;    ///< operators without a kernel of their own here (RegionGraph::run)
  std::vector<at::Tensor> meant;     ///< infinities that depend on no input, if there are any
};

/// Runs the graph of the case's culprit. Harm is what is bad in the outputs that the region gave as bad;
/// modules and stacks of the recording are the program's. Throws what the operators throw, and
/// std::runtime_error if the file lacks something.
OpenedRegion open_region_of(const Case& c, const RegionGraph& graph);

/// The largest difference between compiled and one by one, relative to the largest value, where both are
/// finite.
double furthest(const OpenedRegion& opened);

/// True if the operators one by one go bad in the same elements as the region, except for one in a hundred.
bool goes_bad_alike(const OpenedRegion& opened);

/// True if rounding may decide whether the region goes bad: a value on the way is near the limit of its
/// format, or the operators one by one go bad as well once their inputs are changed in the last bit. Compiled
/// code rounds less often.
bool rounding_decides(const Case& c, const RegionGraph& graph, const OpenedRegion& opened);

}  // namespace nanquest
