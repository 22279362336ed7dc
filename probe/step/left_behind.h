/// What a step leaves behind that loss and gradients don't show: buffers (running statistics, averages) that it
/// spoiled and that stay so, also where a loss scaler leaves the update out.
#pragma once

#include <string>

#include "probe/record/record.h"
#include "probe/record/recorder.h"

namespace nanquest {

/// Name of the first of `buffers` that the step, which runs or has just ended, wrote and that now holds NaN
/// or Inf, of a kind that it didn't hold when the step read it first; "" if there is none. Infinities that
/// somebody wrote there on purpose (a mask, the start of a maximum) are none. Without `all` only what is
/// worth a look in every step is looked at. On the thread that trains; `recorder` records the step.
std::string spoiled_buffer(Recorder& recorder, const NamedTensors& buffers, bool all);

}  // namespace nanquest
