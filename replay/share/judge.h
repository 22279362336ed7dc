/// judge: the verdict on a file, made anew, to be compared with another one's.
#pragma once

#include <optional>
#include <string>

#include "replay/cause/diagnose.h"

namespace nanquest {

struct Judged {
  Verdict verdict;
  SnapshotDoc doc;  ///< with statistics and the culprit that was found
};

/// Verifies and diagnoses the step, with all fixes tried; `seconds` as in LabLimits. `snapshot` is the file's
/// name.
Judged judge_step(const Replayer& replayer, const std::string& snapshot, double seconds,
                  const Progress& progress);

/// In one line: "FP16_OVERFLOW: aten::mm in mlp (forward), origin op, with a verified fix"; `module` as the
/// file calls it.
std::string verdict_line(const Verdict& verdict, const std::string& module);

/// Where two verdicts differ: cause, operation, its place, origin, phase, what precision does, whether a fix
/// is verified, whether the step came back. "" if they say the same. `op`: where `before`'s op is now.
std::string difference(const Verdict& before, const Verdict& now, std::optional<std::int64_t> op = {});

}  // namespace nanquest
