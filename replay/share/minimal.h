/// minimal: as little of a snapshot as still gives the same verdict.
///
/// Greedy, coarse to fine: a part is left out, the rest is diagnosed in full, and the part stays out if the
/// verdict says the same (judge.h). Nothing is taken for granted.
#pragma once

#include <string>
#include <vector>

#include "replay/share/copy.h"
#include "replay/share/judge.h"

namespace nanquest {

/// What came of it.
struct Minimal {
  SnapshotDoc doc;
  CopiedPaths paths;
  Verdict verdict;                    ///< of what is left, as last diagnosed
  std::vector<std::string> left_out;  ///< one line each
  std::vector<std::string> needed;    ///< what was tried without, and how the verdict changed
  int tries = 0;
};

struct MinimalOptions {
  int most_tries = 16;  ///< diagnoses
  double seconds = 0;   ///< of each, as LabLimits
  Progress progress = {};
};

/// `before`: what judge_step says of the whole file, which `replayer` has.
Minimal find_minimal(const Replayer& replayer, const Judged& before, const MinimalOptions& options);

}  // namespace nanquest
