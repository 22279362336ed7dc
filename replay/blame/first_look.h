/// first_look: which op is the first to look at an outside value.
#pragma once

#include "replay/blame/suspects.h"
#include "replay/lab/lab.h"

namespace nanquest {

/// The first op that looks at the bad elements of a suspect's outside value. One that writes into that memory
/// and leaves them as they are, whatever they hold (a row of a table is set in place), only passes by: it is
/// tried with other values there. The suspect's own op where no other is found. At most a few short runs of
/// the lab.
OpId first_to_look(Lab& lab, const Suspect& suspect);

}  // namespace nanquest
