/// record_parts: work given as its parts is recorded like a step, so that it can be examined in the same way.
#pragma once

#include <optional>

#include "replay/cause/parts.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// Runs the parts under the recorder: `given` is the batch, and bad values left in `results` are harm,
/// whatever the phase. Recording::failure says what ended it, or "".
Recording record_parts(const Parts& parts);

/// The recording as something that can be run again; independent of it. Nothing on failure.
std::optional<Replayer> replayer_of(const Recording& recording);

}  // namespace nanquest
