/// findings: the verdict on a spike in words, by what the experiments prove (decision.h).
#pragma once

#include "replay/spike/decision.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// Fills cause, origin, phase, explanation, advice and confidence; samples must be filled before.
void tell(const SpikeFindings& findings, const SpikeTrials& trials, Verdict& verdict);

}  // namespace nanquest
