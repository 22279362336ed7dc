/// opaque: what can be said if an op can't be run again.
#pragma once

#include <cstdint>
#include <optional>

#include "replay/cause/cause.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// The finding if the culprit itself can't be run again (a region of torch.compile, a collective, an op
/// without a kernel here): UNKNOWN, with what is known and how to find out more. Nothing for any other
/// culprit.
std::optional<Finding> opaque_finding(const Case& c);

/// The first op that could not be run in the step as recorded and whose results are not recorded; kNone if
/// there is none.
std::int32_t first_failed(const Case& c);

/// Adds to `v` which ops were not run again, and where the replay had to stop because an op's results are not
/// recorded either.
void add_opaque(const Case& c, Verdict& v);

/// Fills `v.unseen`, and says in `v.not_tested` what could not be looked at.
void add_unseen(const Case& c, Verdict& v);

}  // namespace nanquest
