/// spike: why a finite step was out of its run's usual range, from its file alone, by experiments with
/// controls.
///
///     if (replayer.doc().gate == Gate::spike && !verdict.found) explain_spike(replayer, {}, verdict);
///
/// SPIKE_DATA: with the batch of the step before the step is in its range, and without the named samples it
/// is, while without as many others it is not. Where no samples can be named, the batch must also be out of
/// range after fewer updates (the file's tape).
/// SPIKE_STATE: the batch of the step before is out of range as well, and the step's own batch is in range
/// without the last updates, or without what was written into weights or moments; not without as many updates
/// before those.
/// DIVERGENCE: the same, the run's loss did not come back, and a smaller rate from the tape's beginning keeps
/// it in. Where a rate, or more than a few updates, are why, and the run does not show whether its loss came
/// back, it is one of these two. PRECISION: in fp32 or fp64 the step is in its range, and the last bit of a
/// weight does not matter. Everything else is UNKNOWN, with what was tried.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string>

#include "replay/history/aftermath.h"
#include "replay/trace/replayer.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

struct SpikeOptions {
  double seconds = 0;                 ///< for all experiments; 0: 20 times the step, at least 60
  Aftermath after = Aftermath::open;  ///< what became of the run's loss
  c10::Device device = c10::Device(c10::kCPU);
  std::function<void(const std::string& what)> progress = {};  ///< called with what runs next
};

/// Fills the verdict of a step in which nothing harmful was found and which is on record as a spike: found,
/// cause, explanation, evidence, what was tried, samples. Never throws.
void explain_spike(const Replayer& replayer, const SpikeOptions& options, Verdict& verdict);

}  // namespace nanquest
