/// neutral: puts harmless numbers in the place of one suspect's bad values, and leaves all else as it was.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "replay/blame/suspects.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// What stands in for a bad value. Two that heal alike show that the value itself didn't matter.
enum class Neutral : std::uint8_t {
  above,  ///< what the op gives one precision up, held within the format; where that is not finite either,
          ///< what its finite neighbours are like: their mean for NaN, their largest magnitude for infinities
  zero,
  one,
  healthy,  ///< of an outside value what the last healthy step had in its place; of all others as `above`
};

/// Largest finite value of a floating-point type.
double limit_of(at::ScalarType type);

/// What the last healthy step had in a slot's place, as a 1-D tensor of the slot's type; nothing if it is not
/// known or the same (TwinRun::values_of).
using HealthyValues = std::function<std::optional<at::Tensor>(SlotId)>;

/// Adds to `edit` what makes the suspect harmless. Bad values of kinds that it did not bring are left alone.
/// `healthy` is asked for Neutral::healthy.
void neutralise(const TraceGraph& graph, const Suspect& suspect, Neutral neutral, TraceEdit& edit,
                const HealthyValues& healthy = {});

}  // namespace nanquest
