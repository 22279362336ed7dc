/// together: the ranks of one step run in one process, with the collectives between them really computed.
///
///     std::vector<Lane> lanes = {{0, &replayer0, {}}, {1, &replayer1, {}}};
///     const TogetherRun run = run_together(lanes, GoOn::as_recorded);
///     for (const CollectiveRun& c : run.collectives) say(c.name, c.parts.at(1).matched);
///
/// Each rank runs up to its next collective. When every rank of the group has reached its n-th collective of
/// that group, their present inputs are combined, and the results are compared with what each rank recorded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "replay/trace/collective.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// One rank of the step, and what is changed on it.
struct Lane {
  std::int32_t rank = 0;
  const Replayer* replayer = nullptr;  ///< must outlive the run
  TraceEdit edit = {};
  bool scan = false;  ///< statistics of every written output, in its result
};

/// What ranks continue with after a collective: what they recorded, bit for bit, or what was computed (if
/// everything needed was there).
enum class GoOn : std::uint8_t { as_recorded, with_computed };

/// A collective as one rank had it.
struct CollectivePart {
  std::int32_t op = kNone;                ///< row of that rank's doc.ops
  bool gave_bad = false;                  ///< some of its input was NaN or Inf
  bool got_bad = false;                   ///< some of its result is
  std::optional<trace::Matched> matched;  ///< nothing if it could not be computed
};

/// One collective of the step.
struct CollectiveRun {
  std::string name;                    ///< "c10d::allreduce_"
  std::optional<CollectiveCall> call;  ///< of its first rank; nothing if its kind is not supported here
  std::vector<std::int32_t> ranks;     ///< members of the group, as far as they are known
  std::vector<std::int32_t> missing;   ///< members whose file is not among the lanes
  std::map<std::int32_t, CollectivePart> parts;  ///< by rank
  std::string why_not;  ///< why it was not computed, "" if it was; then the recorded results were used
};

struct TogetherRun {
  std::vector<CollectiveRun> collectives;  ///< in a possible order of execution
  std::map<std::int32_t, RunResult>
      results;  ///< by rank; `kept`: loss, then the gradients in the order of the doc
};

/// Runs all lanes to their ends. Lanes must be of one step and of different ranks. One run at a time per
/// process. Never throws: ops that fail are in the results, and collectives that can't be computed say why.
TogetherRun run_together(const std::vector<Lane>& lanes, GoOn go_on);

}  // namespace nanquest
