/// range_overflow: does an infinity stand for a number too large, or for a pole of the function?
#pragma once

#include "replay/blame/suspects.h"
#include "replay/lab/lab.h"

namespace nanquest {

/// True if infinities that the suspect's op made from finite inputs lie beyond the range of its format, or of
/// any format: they are finite one precision up, or stay infinite in fp64 when all inputs are moved a little
/// either way (exp of 10 000). A logarithm of 0 and a division by 0 become finite then: those are poles and
/// may be intended. At most one run of the step up to the op.
bool is_range_overflow(Lab& lab, const Suspect& suspect);

}  // namespace nanquest
