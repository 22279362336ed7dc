/// neutral: replaces one suspect's bad values by harmless numbers and leaves everything else as it was.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "replay/blame/suspects.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// What replaces a bad value. If two replacements both make the step finite, the value itself didn't matter.
enum class Neutral : std::uint8_t {
  above,  ///< the op's result one precision up, clamped to the format; where that is not finite either, a
          ///< value like its finite neighbours: their mean for NaN, their largest magnitude for infinities
  zero,
  one,
  healthy,  ///< for an outside value, what the last healthy step had in its place; for all others as `above`
};

/// Largest finite value of a floating-point type.
double limit_of(at::ScalarType type);

/// What the last healthy step had in a slot's place, as a 1-D tensor of the slot's type; nothing if it is
/// unknown or the same (TwinRun::values_of).
using HealthyValues = std::function<std::optional<at::Tensor>(SlotId)>;

/// Adds to `edit` what makes the suspect harmless. Other kinds of bad values in the same place are left
/// alone. `healthy` is asked for Neutral::healthy.
void neutralise(const TraceGraph& graph, const Suspect& suspect, Neutral neutral, TraceEdit& edit,
                const HealthyValues& healthy = {});

}  // namespace nanquest
