/// own_part: a trial past a collective, with the file of one rank alone.
///
/// What a collective gave is on record, and can't be made anew without what the other ranks gave. Where this
/// rank had given it something bad, the record holds what became of that, and a step in which it is finite
/// now would get it back all the same: nothing before a collective could ever be blamed. In a trial the
/// elements that are bad on record become what they would be if every rank had given what this one gives
/// now: of a gather or a broadcast its own part, of a sum that times the ranks. It is an assumption about the
/// other ranks, made to ask who is to blame on this one; nothing that is said of a fix may rest on it.
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

  /// Adds to `edit` what a trial needs: nothing for a step whose collectives this rank gave finite numbers.
  void add_to(TraceEdit& edit) const;

  /// Reductions for which a trial took its own part for everybody's, in the order of the step.
  std::vector<OpId> assumed() const { return {assumed_->begin(), assumed_->end()}; }

 private:
  std::map<std::int32_t, TraceEdit::StandIn> stand_ins_;
  std::shared_ptr<std::set<OpId>> assumed_ = std::make_shared<std::set<OpId>>();
};

}  // namespace nanquest
