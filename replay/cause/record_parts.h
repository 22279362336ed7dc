/// record_parts: work that is known as its parts, recorded like a step, so that everything that is asked of a
/// step can be asked of it.
#pragma once

#include <optional>

#include "replay/cause/parts.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// Runs the parts under the recorder: `given` is the batch, and what is left in `results` is harm, whatever
/// the phase. Recording::failure says what ended it, "" if nothing did.
Recording record_parts(const Parts& parts);

/// The recording as something that can be run again; independent of it. Nothing if it can't be had.
std::optional<Replayer> replayer_of(const Recording& recording);

}  // namespace nanquest
