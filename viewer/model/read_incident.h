/// ReadIncident: all that is read of an incident when it is opened: its verdict and snapshot, what replay and
/// rehearsal left beside it, what other ranks wrote. What is read of it later is in IncidentValues.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "probe/snapshot/rank_row.h"
#include "replay/verdict/verdict.h"
#include "viewer/model/incident.h"
#include "viewer/model/progress.h"
#include "viewer/model/rehearsed.h"
#include "viewer/model/source.h"

namespace nanquest::viewer {

/// Never changed once made.
struct ReadIncident {
  std::optional<Verdict> verdict;
  std::shared_ptr<const OpenIncident> open;  ///< null if its snapshot can't be read
  std::string error;                         ///< why; "" if it could
  std::vector<RehearsedCurve> rehearsed;     ///< none if there are none, or the file can't be read
  std::string rehearsed_error;
  std::map<std::int32_t, RankRow> rank_rows;  ///< what other ranks wrote of this step instead of a file
  std::vector<std::string> stack;             ///< of the blamed op, innermost first; empty if not recorded
  Source source;                              ///< the program's lines there
  std::string replay_command;

  bool nothing() const { return open == nullptr && !verdict; }
};

/// Reads the incident of `entry`, which gets what its line shows of it. `of_run`: it lies in a run directory,
/// so its name tells its step and rank; otherwise the file does, where it can be read. `many_ranks`: the run
/// has several. `progress` may be null.
ReadIncident read_incident(IncidentEntry& entry, bool of_run, bool many_ranks, Progress* progress);

}  // namespace nanquest::viewer
