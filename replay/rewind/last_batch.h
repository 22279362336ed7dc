/// last_batch: the incident's batch apart from its step, and that step apart from its batch: the two other
/// corners of data × state; and a tape that one of its steps is cut out of. Plain tables, no torch.
#pragma once

#include <optional>

#include "probe/snapshot/tape.h"

namespace nanquest {

/// The last step alone, as it would have run where the tape begins: its batch on the weights of then. What
/// earlier steps made for it is not there, and ops that read it fail. Needs at least one step.
TapeDoc last_step_alone(const TapeDoc& tape);

/// The tape without step `number`, which is not its last: what that step wrote, the next ones find as it was
/// before. Nothing if the tape doesn't hold it.
std::optional<TapeDoc> without_step(const TapeDoc& tape, std::int64_t number);

/// The tape, its last step on what the step before read from outside (a batch) and drew (random states);
/// weights and what the host computed of its own accord (a rate, a loss scale) are the last step's. Nothing
/// if the two steps are not made of the same operations, or that batch is not there any more. A tape that
/// check_tape calls sound gives a sound one.
std::optional<TapeDoc> last_step_on_batch_before(const TapeDoc& tape);

}  // namespace nanquest
