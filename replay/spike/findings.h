/// findings: what the experiments on a spike show together: its label, and the sentences for it.
#pragma once

#include <string>

#include "replay/spike/data_trials.h"
#include "replay/spike/state_trials.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// The step in wider formats.
struct WideResult {
  bool helps = false;           ///< in `format` the step is in its range …
  bool placebo_helped = false;  ///< … and so it is when the last bit of a weight changes
  std::string format;           ///< "fp32"
  Figures figures;              ///< in it, or in the widest that was tried
};

struct SpikeFindings {
  DataResult data;
  StateResult state;
  WideResult wide;
  bool left_for_good = false;
};

/// The label that the findings prove; `unknown` if they leave two, or none.
Label decide(const SpikeFindings& findings);

/// Fills cause, origin, phase, explanation, advice and confidence; samples must be filled before.
void tell(const SpikeFindings& findings, const SpikeTrials& trials, Verdict& verdict);

}  // namespace nanquest
