/// own_part: an experiment past a collective, with the file of one rank only.
///
/// The result of a collective is recorded and can't be recomputed without the other ranks' inputs. If this
/// rank had passed a bad value to it, the recorded result contains the consequence, and a step in which that
/// value is now finite would still get the recorded result: nothing before a collective could ever be found
/// to blame. So in an experiment the elements that are bad in the record become what they would be if every
/// rank had passed what this rank passes now: for a gather or a broadcast its own part, for a sum that times
/// the number of ranks. This is an assumption about the other ranks, made only to find the op to blame on
/// this rank; no claim about a fix may depend on it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "replay/trace/replayer.h"

namespace nanquest {

class OwnParts {
 public:
  /// `graph` has statistics.
  explicit OwnParts(const TraceGraph& graph);

  /// Adds to `edit` what an experiment needs: nothing if this rank passed only finite numbers to the step's
  /// collectives.
  void add_to(TraceEdit& edit) const;

  /// Reductions for which an experiment used this rank's own part for all ranks, in the order of the step.
  std::vector<OpId> assumed() const { return {assumed_->begin(), assumed_->end()}; }

 private:
  std::map<std::int32_t, TraceEdit::StandIn> stand_ins_;
  std::shared_ptr<std::set<OpId>> assumed_ = std::make_shared<std::set<OpId>>();
};

}  // namespace nanquest
