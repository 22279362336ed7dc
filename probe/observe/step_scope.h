/// A thread's position in the step: phase and micro-batch, for recording.
#pragma once

#include <cstdint>

#include "probe/snapshot/model.h"

namespace nanquest {

/// Marks ops in this scope (on this thread) as belonging to a phase; backward is recognised automatically.
/// The loop wraps unscale, clip and update in PhaseScope(Phase::optimizer).
class PhaseScope {
 public:
  explicit PhaseScope(Phase phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  Phase before_;
};

/// The same for callers without a scope: sets the phase of this thread and returns the previous one.
Phase set_phase(Phase phase);

/// Number of the micro-batch that runs now on this thread (gradient accumulation); default 0.
void set_micro_batch(std::int32_t index);

/// The value last set on the calling thread.
Phase current_phase();
std::int32_t current_micro_batch();

}  // namespace nanquest
