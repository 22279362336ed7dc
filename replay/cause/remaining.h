/// remaining: what still fails in a step once a change is made.
///
/// A step may hold failures that have nothing to do with each other, or that the first one hid (NaN came in
/// where now a zero does; the batch's input is bad, and so is its target). A change that mends the first does
/// not make the step finite then, and still is what the first one needed.
#pragma once

#include <optional>

#include "replay/case/case.h"
#include "replay/counterfactual/change.h"

namespace nanquest {

/// The step with `change` made, as a case of its own: its culprit is the first op that makes bad values there
/// which reach harm; after a change of data, another bad value from outside comes first. Nothing if that is
/// still the culprit of `c` or an op of its derivative (the change does not mend it), or if no op makes any.
/// Runs the step once.
std::optional<Case> remaining(const Case& c, const Change& change);

}  // namespace nanquest
