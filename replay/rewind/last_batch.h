/// last_batch: the incident's batch without its step's state, and that state without the batch: the two other
/// corners of data × state; and a tape without one of its steps. Plain tables, no torch.
#pragma once

#include <optional>

#include "probe/snapshot/tape.h"

namespace nanquest {

/// Only the last step, as it would have run where the tape begins: its batch on the weights of that time.
/// What earlier steps made for it is missing, and ops that read it fail. Needs at least one step.
TapeDoc last_step_alone(const TapeDoc& tape);

/// The tape without its steps `first` to `last`, which must not contain its last one: what they wrote, later
/// steps find as it was before. Nothing if the tape doesn't hold them.
std::optional<TapeDoc> without_steps(const TapeDoc& tape, std::int64_t first, std::int64_t last);
/// The same without one step.
std::optional<TapeDoc> without_step(const TapeDoc& tape, std::int64_t number);

/// The tape with its last step on what an earlier step (the one before, or `back` steps before) read from
/// outside (a batch) and drew (random states); weights and what the host computed by itself (a learning rate,
/// a loss scale) are the last step's. Nothing if the two steps consist of different operations, or that batch
/// no longer exists. If check_tape accepts the tape, it accepts the result.
std::optional<TapeDoc> last_step_on_batch_before(const TapeDoc& tape, std::size_t back = 1);

}  // namespace nanquest
