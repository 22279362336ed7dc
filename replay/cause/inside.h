/// inside: blame inside a fused op. The culprit is run as its parts on its inputs, that run is recorded like
/// a step, and the part that made the bad values is named, with its cause.
#pragma once

#include "replay/case/case.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// Adds to evidence and explanation which part of the culprit failed, if the culprit is a fused op (parts.h)
/// whose parts fail as it did. If nothing explained the op, the part's cause becomes the verdict's.
/// `v.cause`, `v.explanation` and `v.advice` must be filled.
void add_inside(const Case& c, Verdict& v);

}  // namespace nanquest
