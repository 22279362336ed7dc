/// region: blame goes into what torch.compile made. The graph that the compiler was given is run operator by
/// operator on what the region was given, that run is recorded like a step, and the step that it is is
/// diagnosed.
#pragma once

#include "replay/cause/diagnose.h"

namespace nanquest {

/// If the culprit is a compiled region whose graph the file holds: the operator inside it, with its cause,
/// evidence and the change that heals it there, take the region's place in `v` (CulpritInfo::inside). Where
/// the operators one by one are finite on the same values and in fp64 as well, the cause is COMPILER. `v`
/// must hold what is known of the region. What can't be looked into is said in `v.not_tested`. Never throws.
void look_into_region(const Case& c, const DiagnoseOptions& options, Verdict& v);

}  // namespace nanquest
