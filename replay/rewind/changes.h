/// changes: what a rewind can change, read from text, and placebos.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "replay/rewind/run_again.h"

namespace nanquest {

/// One thing to try on a tape.
struct TapeChange {
  TapeRunner::Change change;
  std::optional<std::int64_t> leaves_out = {};  ///< this step is skipped
  std::string not_tried;                        ///< why there is nothing to try, "" if there is
};

/// "lr=*0.5" (every update is multiplied by this), "warmup=32" (updates grow to their size over this many),
/// "clip=1" (gradients of an update have at most that 2-norm together), "moments=reset" (the optimizer's
/// state is zero at the anchor), "beta2=0.95" or "eps=*100" (beta1, weight_decay and momentum too:
/// numbers.h), "precision=fp32" (or bf16, fp64; every op), "undo=120" (what that step writes into weights and
/// moments outside of its update is undone), "skip=131" (that step is left out, the incident's or one of the
/// tape). `usage` for anything else; the message says what a tape can't change.
Result<TapeChange> parse_change(const std::string& text, const TapeDoc& tape, std::int64_t bad_step);

/// What is tried by default: three smaller learning rates, a warm-up as long as the tape, a clip at 1,
/// moments reset, another beta2 and eps if an operation has them, odd writes undone (odd_steps), fp32 if 16
/// bits were used, the incident's step left out; before all of them, if the loss jumped at an earlier step
/// (first_jump), that step left out.
std::vector<std::string> usual_changes(const TapeDoc& tape, std::int64_t bad_step);

/// The last bit of one element of one weight at the anchor, of the format that it is computed in, drawn by
/// `seed`. `text` says which: "the last bit of fc.weight[17], seed 2". Nothing if no weight can be changed
/// like this.
std::optional<TapeRunner::Change> placebo(const Replayer& tape, std::uint64_t seed, std::string& text);

}  // namespace nanquest
