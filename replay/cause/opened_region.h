/// opened_region: the operators of a compiled region, run one by one on what it was given and recorded like a
/// step; and how what they give stands to what the compiled code gave.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "probe/record/record.h"
#include "probe/trace/regions.h"
#include "replay/case/case.h"
#include "replay/lab/region_graph.h"

namespace nanquest {

/// What one run of the region's operators on its recorded inputs gave.
struct OpenedRegion {
  Recording recording;
  std::vector<at::Tensor> outputs;   ///< one per recorded output, without what is meant
  std::vector<at::Tensor> recorded;  ///< what the compiled region gave, the same
  std::set<std::string> stood_in;    ///< operators whose own kernel is not here (RegionGraph::run)
  std::vector<at::Tensor> meant;     ///< infinities that hang on nothing it is given, where there are some
};

/// Runs the graph of the case's culprit. Of its outputs those that the region gave as bad are harm; modules
/// and stacks of the recording are the program's. Throws what the operators throw, and std::runtime_error
/// where the file lacks something.
OpenedRegion open_region_of(const Case& c, const RegionGraph& graph);

/// The largest difference between compiled and one by one, in parts of the largest value, over what both have
/// finite.
double furthest(const OpenedRegion& opened);

/// True if the operators one by one go bad in the elements that the region gave as bad, but for one in a
/// hundred.
bool goes_bad_alike(const OpenedRegion& opened);

/// True if rounding may decide whether the region goes bad: a value on the way is near the end of its format,
/// or the operators one by one go bad as well once what they are given is moved by its last bit. Compiled
/// code rounds less often.
bool rounding_decides(const Case& c, const RegionGraph& graph, const OpenedRegion& opened);

}  // namespace nanquest
