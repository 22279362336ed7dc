/// unwritten_state: a weight, buffer or moment that the program made in the step and wrote only in part.
#pragma once

#include "replay/case/case.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// For a step in which nothing bad is computed: looks for state that got new memory in it, is bad in the
/// file, and whose bad elements no op wrote. What such memory holds is a matter of chance, so a replay need
/// not show it; the write ranges of the trace prove it. Completes the verdict and returns true if there is
/// one.
bool find_unwritten_state(const Case& c, Verdict& v);

}  // namespace nanquest
