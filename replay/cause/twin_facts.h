/// twin facts: what the step does on the batch of the last healthy one, as evidence.
#pragma once

#include <optional>

#include "replay/cause/cause.h"

namespace nanquest {

/// Adds to the verdict's evidence whether the step is finite on the twin's batch, and, for a cause about
/// magnitudes, how large the culprit's inputs are there. Nothing if there is no twin, or its run shows
/// nothing. Runs the step at most once, if that was not done yet.
void add_twin_facts(const Case& c, const Finding& finding, Verdict& v);

/// How many times larger the culprit's most different input is on this batch than on the twin's, with the
/// same weights; nothing if unknown. Runs the step as above.
std::optional<double> times_health(const Case& c);

}  // namespace nanquest
