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

/// The newest step of which both runs hold a recording (or an incident) of the same rank, or `step`. Of all
/// such steps up to it, the values at their start are compared to the bit until they differ. `usage`: there
/// is no such step; errors of unreadable files as SnapshotReader::open.
Result<RunPair> compare_runs(const std::string& run_a, const std::string& run_b,
                             std::optional<std::int64_t> step);

}  // namespace nanquest::diff
