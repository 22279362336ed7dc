/// root: what a rehearsal says of an incident, put into its verdict.
///
///     Verdict v = diagnose(…);
///     take_root(v, "run/incidents/step-00000131.r0.h5");   // reads step-00000131.r0.rehearsal.json if there
///     is one
#pragma once

#include <string>

#include "replay/verdict/verdict.h"

namespace nanquest {

/// The first sentence of the advice where values grew over many steps and no root is known.
std::string root_advice();

/// Fills `verdict.root` from the rehearsal beside `snapshot`, if there is one of this step and rank that
/// names a root; otherwise it stays as it is. A file that can't be read, or that names no root, becomes a
/// line of `not_tested`. If a root is known, the line about a missing root is removed, and `root_advice`
/// becomes what was tried.
void take_root(Verdict& verdict, const std::string& snapshot);

}  // namespace nanquest
