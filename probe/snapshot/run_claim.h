/// A run directory holds one run, written by one process a rank.
///
///     Result<RunClaim> claim = RunClaim::take("runs/story", 0, false);
///     if (!claim->earlier().empty()) say(claim->earlier_text());
///
/// Taking it makes the directory. What an earlier run left there (manifest, series, metrics, incidents, recordings,
/// checkpoints, restarts; nothing else) is moved to `run_dir/earlier/<when it began>/`, itself a run directory, so that
/// nothing of two runs is ever mixed and nothing is lost. The claim is a POSIX lock on a file `.lock.r0`: it
/// ends with the object or the process, however that ends, and children do not inherit it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "probe/base/result.h"

namespace nanquest {

/// In the run directory: a training program's numbers for other programs, which belong to the run.
inline constexpr const char* kMetricsJsonl = "metrics.jsonl";
inline constexpr const char* kMetricsCsv = "metrics.csv";

class Descriptor;

/// Copies share the claim; the last one gives it back.
class RunClaim {
 public:
  /// Claims `run_dir` for `rank`. `resume` keeps what is there. Only rank 0 moves an earlier run away, and
  /// nothing that another living process has claimed. `usage` if another process is writing this rank of the
  /// run now; `io` if the directory can't be made or an earlier run not be moved.
  static Result<RunClaim> take(const std::string& run_dir, std::int32_t rank, bool resume);

  /// Where the earlier run is now, "" if there was none.
  const std::string& earlier() const { return earlier_; }
  /// "the run that was in runs/story is now in runs/story/earlier/20260102T030405Z", "" if there was none.
  std::string earlier_text() const;

 private:
  std::string run_dir_, earlier_;
  std::shared_ptr<Descriptor> lock_;
};

}  // namespace nanquest
