/// minimal: as little of a snapshot as still gives the same verdict.
///
/// Greedy, coarse to fine: a part is left out, the rest is diagnosed completely, and the part stays out if
/// the verdict says the same (judge.h). Nothing is assumed.
#pragma once

#include <string>
#include <vector>

#include "replay/share/copy.h"
#include "replay/share/judge.h"

namespace nanquest {

/// The result.
struct Minimal {
  SnapshotDoc doc;
  CopiedPaths paths;
  Verdict verdict;                    ///< of what is left, as last diagnosed
  std::vector<std::string> left_out;  ///< one line each
  std::vector<std::string> needed;    ///< parts that had to stay, and how the verdict changed without them
  int tries = 0;
};

struct MinimalOptions {
  int most_tries = 16;  ///< diagnoses
  double seconds = 0;   ///< time of each, as LabLimits
  Progress progress = {};
};

/// `before`: the result of judge_step for the whole file, which `replayer` has.
Minimal find_minimal(const Replayer& replayer, const Judged& before, const MinimalOptions& options);

}  // namespace nanquest
