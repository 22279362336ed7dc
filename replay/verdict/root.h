/// root: what a rehearsal says of an incident, put into its verdict.
///
///     Verdict v = diagnose(…);
///     take_root(v, "run/incidents/step-00000131.r0.h5");   // reads step-00000131.r0.rehearsal.json, if it
///     is there
#pragma once

#include <string>

#include "replay/verdict/verdict.h"

namespace nanquest {

/// The advice of a verdict that no root is known for; `alone`: nothing is advised before it.
std::string root_advice(bool alone);

/// Fills `verdict.root` from the rehearsal beside `snapshot`, if there is one of this step and rank that
/// claims a root; what stood there stays otherwise. A file that can't be read, and one that claims no root,
/// become a line of `not_tested`; where a root is known, the line that misses it goes, and `root_advice`
/// becomes what was tried.
void take_root(Verdict& verdict, const std::string& snapshot);

}  // namespace nanquest
