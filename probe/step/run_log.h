/// RunLog: the run directory as the probe keeps it: made at the start, its manifest rewritten when something
/// happens (an incident, the end), never in a good step. A run that stays bad has an incident in every step:
/// those without a file are written about once a second, and the first thousand are listed.
#pragma once

#include <chrono>
#include <string>

#include "probe/base/result.h"
#include "probe/nanquest.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/run_claim.h"

namespace nanquest {

class RunLog {
 public:
  /// Claims the directory (RunClaim: an earlier run in it is moved away unless `options.resume`) and makes
  /// its manifest (rank 0 writes it; the others only need the directory). `io` if that is impossible, `usage`
  /// if another process is writing there. With `options.resume` the incidents of the manifest there are kept.
  static Result<RunLog> create(const ProbeOptions& options);

  /// One line about an earlier run that was moved, "" if there was none.
  std::string earlier_text() const { return claim_.earlier_text(); }

  /// Notes an incident; `path` is "" if no snapshot was written.
  Status incident(std::int64_t step, Gate gate, const std::string& path, const std::string& summary,
                  bool muted = false);
  /// Notes that a snapshot of `bytes` was removed, and why.
  void removed(const std::string& path, std::uint64_t bytes, const std::string& why);
  /// This many steps after the last incident have only shown its damage. Written with the next incident, at
  /// the end, or about once a second.
  void carried_on(std::int64_t steps);
  /// So many steps after the last incident were bad anew in the same way.
  void repeated(std::int64_t steps);
  /// Stores that a place is about to leave its range; `told.rank` is filled here.
  Status forecast(ManifestForecast told);
  /// Stores that weights which the ranks should hold alike differ.
  Status replicas_differ(ManifestReplicas told);
  /// Stores something to tell of that is no incident; `finding.rank` is filled here.
  Status found(ManifestFinding finding);
  /// The end: `status` is "finished" or another word of Manifest::status.
  Status end(const std::string& status, const std::string& outcome);

 private:
  RunLog(RunClaim claim, std::string run_dir, Manifest manifest)
      : claim_(std::move(claim)), run_dir_(std::move(run_dir)), manifest_(std::move(manifest)) {}
  Status write(Durable durable);
  /// As the manifest names it; "" stays "".
  std::string relative(const std::string& path) const;

  RunClaim claim_;
  std::string run_dir_;
  Manifest manifest_;
  std::chrono::steady_clock::time_point written_;
};

}  // namespace nanquest
