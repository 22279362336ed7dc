/// protect: the smallest set of ops that must run in a wider format to make the step finite.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/case/case.h"

namespace nanquest {

/// Ops around the culprit, by data flow in both directions, in rings that grow until the step is finite with
/// all of them in `wide`; of those the smallest set that is still enough (ddmin: leaving out any one fails),
/// in the order of the step. Empty if there is no culprit op, if all reachable ops together do not help, if
/// more than `most` ops would be needed, or if time runs out.
std::vector<std::int32_t> protected_set(const Case& c, Precision wide, std::size_t most = 24);

}  // namespace nanquest
