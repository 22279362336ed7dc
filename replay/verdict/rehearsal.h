/// rehearsal: a run trained on from one state several times, with one thing changed each time; and the one
/// rule that says which change prevents the failure ("cures" the run).
///
///     Rehearsal r = …;            // runs filled in by nanquest-trainer rehearse or nanquest rehearse
///     judge(r);
///     write_file_atomically(rehearsal_path(snapshot), to_json(r));
///
/// Any change moves a failure, so a change must do more than that: placebos (a last bit of one weight) show
/// how far chance alone moves it. Plain data without torch. Does not train or print.
///
/// The file is "nanquest.rehearsal", version 1: a new field may be added at any time, readers ignore what
/// they don't know; a change of meaning increases kRehearsalVersion, and older readers then refuse the file.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "replay/verdict/words.h"

namespace nanquest {

inline constexpr std::int64_t kRehearsalVersion = 1;
/// Steps by which a change must outlive the baseline, and whose mean losses are compared.
inline constexpr std::int64_t kOutlive = 16;
/// Good steps after the latest failure from which on a cure is verified for the run.
inline constexpr std::int64_t kVerified = 64;

/// One run of a rehearsal. Steps are optimizer steps of the run that is rehearsed.
struct RehearsedRun {
  RehearsedKind kind = RehearsedKind::unchanged;
  /// "lr=*0.5"; for a placebo "the last bit of fc.weight[17], seed 2"; "" for the unchanged run.
  std::string change = {};
  std::int64_t first_step = 0;
  std::vector<double> losses = {};  ///< of every good step from the first on; NaN: skipped on purpose
  std::optional<std::int64_t> failed_step = {};  ///< the bad step that ended it
  std::string failure = {};    ///< "the loss is NaN"; for a run that ended itself: why, if known
  bool ended_itself = false;   ///< it ended by itself before its horizon
  std::string not_tried = {};  ///< why this run could not be made: it says nothing then
  std::string doubt = {};      ///< why it is no cure, although it may look like one

  // Filled by `judge`. Means are NaN if there is nothing to average.
  double mean = std::nan("");      ///< loss over the common steps
  double end_mean = std::nan("");  ///< loss over the last 16 steps
  bool outlives = false, learns = false, cures = false;
  std::string remark = {};  ///< a short result for people

  /// One after the last good step.
  std::int64_t end() const { return first_step + static_cast<std::int64_t>(losses.size()); }
};

/// What made the run fail, as far as a change that cures it shows.
struct RehearsedRoot {
  std::string cause;                      ///< "DIVERGENCE", "BAD_DATA", "PRECISION" or "UNKNOWN"
  std::string change;                     ///< the cheapest one that cures; "" if none does
  std::vector<std::string> cured, tried;  ///< all that cure, all that were tried
  std::int64_t steps = 0;                 ///< good steps after the latest failure, with `change`
  bool verified = false;                  ///< for the run
  std::string explanation;                ///< one sentence
};

struct Rehearsal {
  std::string snapshot = {};  ///< name of the snapshot that the file is beside; "" if there is none
  std::int64_t step = 0;      ///< of the incident, as recorded
  std::int32_t rank = 0;
  std::string program = {};              ///< one line: what was run
  std::string began = {};                ///< where the runs begin, "" if unknown
  std::int64_t horizon = 64;             ///< steps after the incident
  std::optional<bool> as_recorded = {};  ///< whether the unchanged run's losses are those on record, bit for
                                         ///< bit; nothing: none to compare with
  /// From this step on batches are those of earlier steps again (nanquest-replay rewind has no others): such
  /// steps may cure, but verify nothing for the run.
  std::optional<std::int64_t> again = {};
  /// How weights grew over the steps before the incident, in words ("weight_amax of mlp grew from 1.4 to 3.4
  /// over the last 64 steps"); "" if they didn't, or it is unknown.
  std::string growth = {};
  std::vector<RehearsedRun> runs = {};  ///< as they were made, the unchanged one first

  // Filled by `judge`.
  std::vector<std::int64_t> failed_steps = {};  ///< of the baseline: earliest and latest; empty without any
  std::vector<double> loss = {};                ///< its means over the common steps: least and most
  std::optional<RehearsedRoot> root = {};       ///< nothing if no root can be named
  std::string not_tried = {};                   ///< why, then
};

/// Fills in the members marked "Filled by `judge`". The baseline is the unchanged run and the placebos; a
/// placebo with all the losses of the unchanged run changed nothing and does not count.
/// - All of the baseline must fail, the unchanged run at the recorded step (or the next: a guard sees a
///   spoiled update one step later); otherwise no root is named.
/// - A change outlives if it gets at least 16 steps further than the latest failure of the baseline.
/// - Its mean loss over the common steps must be at most the largest of the baseline's, within 2·s/√n. Common
///   are the last 16 steps before the earliest failure, or as many as there are (n); s is how much the
///   unchanged run's losses scatter from one to the next.
/// - It learns if its last 16 losses are not above its own on the common steps, nor above its first 16,
///   within 2·s/√n of what it was there. A run that only survives while its loss climbs is not cured.
/// - It cures if all three hold, and `doubt` is empty. That is verified for the run with 64 good steps after
///   the latest failure, none of which may use earlier batches (Rehearsal::again).
/// - The root is named after the cheapest change that cures: precision before data before the optimizer's
///   settings. But a wider format only outlasts weights that grow (`growth`): then precision comes after an
///   optimizer setting that cures as well.
void judge(Rehearsal& rehearsal);

/// A table for people, with a line about the root; ends with a newline.
std::string rehearsal_text(const Rehearsal& rehearsal);

/// The file's content, indented, ends with a newline. Numbers that are not finite become null.
std::string to_json(const Rehearsal& rehearsal);
/// Reads it. Missing fields keep their defaults. `bad_file` if it is no rehearsal, of another version, or a
/// field has an invalid value.
Result<Rehearsal> rehearsal_from_json(const std::string& text);

/// Beside a snapshot: run/incidents/step-00000131.r0.rehearsal.json
std::string rehearsal_path(const std::string& snapshot);

}  // namespace nanquest
