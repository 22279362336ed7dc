/// runs: two run directories: the step that both recorded, where their states part, and where their losses
/// do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "replay/diff/report.h"

namespace nanquest::diff {

/// The files of one step, and what the runs show beside it.
struct RunPair {
  std::string a, b;
  Runs runs;
};

/// The files of one step of runs with different numbers of ranks, in the order of the ranks.
struct RankFiles {
  std::vector<std::string> a, b;
  bool of_many() const { return !a.empty(); }
};

/// Of the newest step that both recorded, or `step`: all files, if the runs have different numbers of them;
/// otherwise nothing. `usage`: both are of several ranks.
Result<RankFiles> files_over_ranks(const std::string& run_a, const std::string& run_b,
                                   std::optional<std::int64_t> step);

/// The ranks of which both runs hold a recording (or an incident) of the newest step that both have, or of
/// `step`, in order. `usage`: there is no such step.
Result<std::vector<std::int32_t>> ranks_of_both(const std::string& run_a, const std::string& run_b,
                                                std::optional<std::int64_t> step);

/// The files of that step and rank. Of all steps up to it of which both have that rank's files, the values at
/// their start are compared to the bit until they differ. Errors as ranks_of_both, and those of unreadable
/// files as SnapshotReader::open.
Result<RunPair> compare_runs(const std::string& run_a, const std::string& run_b,
                             std::optional<std::int64_t> step, std::int32_t rank);

}  // namespace nanquest::diff
