/// region_operators: operators of the compiler's own that LibTorch lacks, computed with LibTorch's. Used by
/// region_graph only.
#pragma once

#include <string>

#include "replay/lab/region_values.h"

namespace nanquest::region {

/// An operator that only the compiler has.
struct OwnOperator {
  c10::FunctionSchema schema;
  Results (*run)(const std::vector<c10::IValue>& arguments);  ///< throws what ATen throws
};

/// By its name ("prims::…"); null if it is none of them. Valid as long as the program runs.
const OwnOperator* own_operator(const std::string& name);

}  // namespace nanquest::region
