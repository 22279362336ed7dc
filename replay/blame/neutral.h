/// neutral: puts harmless numbers in the place of one suspect's bad values, and leaves all else as it was.
#pragma once

#include <cstdint>
#include <span>

#include "replay/blame/suspects.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// What stands in for a bad value. Two that heal alike show that the value itself didn't matter.
enum class Neutral : std::uint8_t {
  above,  ///< what the op gives one precision up, held within the format; where that is not finite either, what
          ///< its finite neighbours are like: their mean for NaN, their largest magnitude for infinities
  zero,
  one,
};

/// Adds to `edit` what makes the suspect harmless. Bad values of kinds that it did not bring are left alone.
void neutralise(const TraceGraph& graph, const Suspect& suspect, Neutral neutral, TraceEdit& edit);

}  // namespace nanquest
