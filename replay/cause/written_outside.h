/// written_outside: a weight, moment or gradient that is bad when the step ends, and that no operation on
/// record made bad.
#pragma once

#include "replay/case/case.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// For an incident whose gate found non-finite numbers, and whose operations compute none: looks for the
/// tensor that holds them, which code outside of the recorded operations (NumPy, C++, numbers of Python)
/// wrote. Completes the verdict as UNKNOWN, with the tensor and the two operations between which it was
/// written; if no tensor on record holds them, with what the gate counted. Returns false if the file has no
/// sign of a bad number.
bool find_written_outside(const Case& c, Verdict& v);

}  // namespace nanquest
