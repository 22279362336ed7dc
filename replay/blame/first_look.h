/// first_look: the first op whose result depends on an outside value.
#pragma once

#include "replay/blame/suspects.h"
#include "replay/lab/lab.h"

namespace nanquest {

/// The first op that looks at the bad elements of a suspect's outside value. An op that writes into that
/// memory and keeps them whatever they are (setting a row of a table in place) does not look at them: this is
/// tested with other values. Returns the suspect's own op if no other is found. At most a few short runs of
/// the lab.
OpId first_to_look(Lab& lab, const Suspect& suspect);

}  // namespace nanquest
