/// A run directory holds one run, written by one process per rank.
///
///     Result<RunClaim> claim = RunClaim::take("runs/story", 0, false);
///     if (!claim->earlier().empty()) say(claim->earlier_text());
///
/// Taking it creates the directory. Files of an earlier run (manifest, series, metrics, incidents,
/// recordings, checkpoints, restarts; nothing else) are moved to `run_dir/earlier/<when it began>/`, itself a
/// run directory, so that two runs are never mixed and nothing is lost. The claim is a POSIX lock on a file
/// `.lock.r0`: it ends with the object or the process, however that ends, and child processes do not inherit
/// it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "probe/base/result.h"

namespace nanquest {

/// A training program's numbers for other programs. In the run directory, as part of the run.
inline constexpr const char* kMetricsJsonl = "metrics.jsonl";
inline constexpr const char* kMetricsCsv = "metrics.csv";

class Descriptor;

/// Copies share the claim; the last one releases it.
class RunClaim {
 public:
  /// Claims `run_dir` for `rank`. `resume` keeps existing files. Only rank 0 moves an earlier run away,
  /// except files that another running process has claimed. `usage` if another process is writing this rank
  /// of the run; `io` if the directory can't be created or an earlier run can't be moved.
  static Result<RunClaim> take(const std::string& run_dir, std::int32_t rank, bool resume);

  /// The new place of the earlier run, "" if there was none.
  const std::string& earlier() const { return earlier_; }
  /// "the run that was in runs/story is now in runs/story/earlier/20260102T030405Z", "" if there was none.
  std::string earlier_text() const;

 private:
  std::string run_dir_, earlier_;
  std::shared_ptr<Descriptor> lock_;
};

}  // namespace nanquest
