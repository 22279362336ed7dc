/// inside: blame goes into a fused op. The culprit is run as its parts on what it was given, that run is
/// recorded like a step, and the part that made the bad values is named, with its cause.
#pragma once

#include "replay/case/case.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// Adds to evidence and explanation which part of the culprit it was, if the culprit is a fused op (parts.h)
/// whose parts fail as it did. Where nothing explained the op, what explains its part is the verdict's cause.
/// `v.cause`, `v.explanation` and `v.advice` must be filled.
void add_inside(const Case& c, Verdict& v);

}  // namespace nanquest
