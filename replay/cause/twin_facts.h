/// twin facts: what the step does on the batch of the last healthy one, as evidence.
#pragma once

#include <optional>

#include "replay/cause/cause.h"

namespace nanquest {

/// Adds to the verdict's evidence whether the step is well on the twin's batch, and, for a cause that speaks
/// of magnitudes, how large the culprit's inputs are there. Nothing where there is no twin, or its run tells
/// nothing. Runs the step at most once, if nobody has.
void add_twin_facts(const Case& c, const Finding& finding, Verdict& v);

/// How many times larger the most uncommon input of the culprit is on this batch than on the twin's, with the
/// same weights; nothing where that isn't known. Runs the step as above.
std::optional<double> times_health(const Case& c);

}  // namespace nanquest
