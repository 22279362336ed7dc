/// Facts: what the probe has to say of a step, as data. `text_of` makes the line; every sentence that the
/// probe says of a step is in sentences.cpp.
///
///     Facts told;
///     told.push_back({Fact::buffer_spoiled, "norm.running_mean", "", 17});
///     log(text_of(told));   // "step 17: buffer norm.running_mean became NaN or Inf"
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nanquest {

struct GateResult;

struct Fact {
  enum Kind : std::uint8_t {
    text,  ///< `name` as it is: text of another part or library
    // What is bad.
    loss_bad,          ///< `value`: the loss; and `number` elements of the gradients
    gradients_bad,     ///< `number` elements
    clip_norm_bad,     ///< the norm by which finite gradients were clipped
    norm_overflows,    ///< the norm of finite gradients
    scale_overflowed,  ///< the loss scale was too high
    still_looking,     ///< `number` overflows in a row, the last at the scale `value`
    buffer_spoiled,    ///< `name`
    stays_bad,         ///< `name` and `number` more that live on, of a step whose update is left out
    spoiled_between,   ///< `name` and `number` more, between the update and the next pass, by the op `more`
    only_buffer_spoiled,  ///< `name`; loss and gradients are finite
    hidden_overflow,
    weight_bad,        ///< `name` and `number` more after the update; the op `more` wrote it
    moment_bad,        ///< the same
    update_wrote_bad,  ///< a watched update
    forecast,          ///< `name`: what is about to leave its range
    // What is finite, and far out of its band.
    spike,      ///< `name`: a figure; its `value`, and in `more` its usual range
    spike_too,  ///< the same, of another figure
    diverged,   ///< the loss left its band in step `since` and is still outside; `more`: what moved first
    rank_found_bad,   ///< rank `number`
    rank_overflowed,  ///< rank `number`
    // What happened to the step.
    no_update_follows,
    program_ended,
    raised,         ///< `name`: the error that ended the program, `value`: the last loss that was computed
    next_pass_bad,  ///< the pass after it is bad as well
    update_not_skipped,
    update_differs,  ///< one process failed and another did not
    // Since when, and which update or step did it.
    still_bad,            ///< `name` and `number` more, when the program ends
    never_updated,        ///< of `number` steps no one was finite
    scale_fell,           ///< to `value`
    one_more,             ///< of the kind of step `since`, by `name`: no file
    bad_at_start,         ///< `name` and `number` more were bad before the first update
    carried_on,           ///< `name` and `number` more are bad since step `since`
    update_spoiled,       ///< the update of step `since` spoiled `name`
    update_left_bad,      ///< this step's update spoiled `name`
    bad_since,            ///< `name` was finite after step `since`
    bad_before,           ///< `name` was bad when the step began
    was_finite_after,     ///< step `since`, and nothing after it is on record
    update_not_recorded,  ///< the next `number` are
    no_culprit,           ///< nothing was found that explains it
    // Why there is no file, or only a part of it.
    muted,             ///< `name` in `more`
    level_keeps_none,  ///< level guard in an attached program
    graph_ran,         ///< a captured graph
    update_not_kept,
    nothing_recorded,
    files_used_up,     ///< `number` were written
    left_to_rank,      ///< rank `number` was first; `name`: what that rank reported
    cannot_run_again,  ///< another process can't
    rerun_threw,       ///< `name`
    not_reproduced,
    capture_failed,    ///< `more`
    file_not_written,  ///< `name`
    file_too_large,
    manifest_not_written,  ///< `name`
    recorded,
    not_recorded,  ///< `name`
    off,           ///< the probe is off, because `name` failed: `more`
  };

  Kind kind = text;
  std::string name = {}, more = {};
  std::int64_t step = kNoStep;  ///< the sentence begins with it
  std::int64_t number = 0, since = 0;
  double value = 0;

  static constexpr std::int64_t kNoStep = INT64_MIN;
};

/// In the order in which they are printed.
using Facts = std::vector<Fact>;

/// The sentences of all facts, joined by semicolons; "" for none.
std::string text_of(const Facts& facts);

/// A fact for text of another part; none for "".
void add_text(Facts& facts, std::string text);
/// Appends `more`.
void add(Facts& facts, Facts more);
/// What loss and gradients show of a bad step. `norm_bad`: the norm used for clipping was bad too.
Fact what_is_bad(const GateResult& seen, bool norm_bad);

}  // namespace nanquest
