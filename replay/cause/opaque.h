/// opaque: what can be said where an op can't be run again.
#pragma once

#include <cstdint>
#include <optional>

#include "replay/cause/cause.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// The finding when the culprit itself can't be run again (a region of torch.compile, a collective, an op
/// whose kernel is not here): UNKNOWN, with what is known and how to see more. Nothing for any other culprit.
std::optional<Finding> opaque_finding(const Case& c);

/// The first op that could not be run in the step as recorded, and of which nothing is on record; kNone if
/// there is none.
std::int32_t first_failed(const Case& c);

/// Adds to `v` which ops were not run again, and where the replay had to stop because an op's outputs are not
/// on record either.
void add_opaque(const Case& c, Verdict& v);

/// Fills `v.unseen`, and says in `v.not_tested` what nobody could look at.
void add_unseen(const Case& c, Verdict& v);

}  // namespace nanquest
