/// region: blame inside a region of torch.compile. The graph that the compiler was given is run operator by
/// operator on the region's inputs, that run is recorded like a step, and this step is diagnosed.
#pragma once

#include "replay/cause/diagnose.h"

namespace nanquest {

/// If the culprit is a compiled region whose graph the file holds: the operator inside it, with its cause,
/// evidence and the change that makes it finite there, replace the region in `v` (CulpritInfo::inside). If
/// the operators one by one are finite on the same values and in fp64 as well, the cause is COMPILER. `v`
/// must hold what is known of the region. What can't be examined is said in `v.not_tested`. Never throws.
void look_into_region(const Case& c, const DiagnoseOptions& options, Verdict& v);

}  // namespace nanquest
