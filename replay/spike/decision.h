/// decision: what the experiments on a spike prove together.
#pragma once

#include <string>

#include "replay/history/aftermath.h"
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
  Aftermath after = Aftermath::open;
};

/// Whether the step's batch is in its range after fewer or other updates.
Standing with_other_state(const StateResult& state);
/// Whether the batch is why: by the batch of the step before, and by one of the tape, which decides.
DataResult::Verdict data_of(const SpikeFindings& findings);
/// The label that the findings prove; `unknown` if they leave two, or none.
Label decide(const SpikeFindings& findings);

}  // namespace nanquest
