/// once_more: a tape whose steps are repeated after its end, so that a run which does not go bad at the
/// incident can go on.
///
/// What the steps keep from one to the next (weights, moments, buffers) goes on; batches, masks and numbers
/// that the host computed are those of the tape again (except the learning rate, which run_again.h continues
/// from the last). The incident's own step is not repeated. Plain tables, no torch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "probe/snapshot/tape.h"

namespace nanquest {

/// Ops [begin, end) of each step of a tape: what runs after an update belongs to the next step.
struct StepSpan {
  std::int32_t begin = 0, end = 0;
};
std::vector<StepSpan> spans_of(const TapeDoc& tape);
/// Which of them contains op `op`; nothing if it comes after all.
std::optional<std::size_t> span_with(std::span<const StepSpan> spans, std::int32_t op);

/// The step that goes bad may have no gate on the tape: then it gets one at the tape's end, as step `number`.
void close_last_step(TapeDoc& tape, std::int64_t number);

/// The tape, and after it up to `steps` of its steps from the first on, numbered on from the last; without
/// its last step in both if `leave_out_last`. If check_tape accepts the tape, it accepts the result. Its rows
/// keep their numbers. Needs at least one step.
TapeDoc once_more(const TapeDoc& tape, std::int64_t steps, bool leave_out_last = false);

}  // namespace nanquest
