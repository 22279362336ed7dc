/// rank_steps: a step on one rank and the same step on several, run side by side. Private to replay/diff.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "replay/diff/align.h"
#include "replay/diff/edits.h"
#include "replay/diff/ends.h"
#include "replay/diff/made_up.h"
#include "replay/diff/report.h"
#include "replay/diff/rounding.h"
#include "replay/diff/shares.h"

namespace nanquest::diff {

/// What a run of all of them shows.
struct RankPass {
  std::map<WrittenPlace, Made> made;  ///< of A's values
  std::vector<Group> ends;            ///< loss, gradients, updated weights
  std::vector<std::string> left_out;  ///< ends whose parts do not fit, as sentences
  Shares shares{0};                   ///< of the gradients before they are added over the ranks
};

/// A is the step on one rank. What it refers to must outlive it.
class RankSteps {
 public:
  RankSteps(const Replayer& one, const std::vector<Replayer>& ranks);

  const TraceGraph& graph() const { return graph_; }
  const TraceGraph& graph_of_first() const { return graphs_.front(); }
  /// A and the first rank.
  const Alignment& alignment() const { return alignment_; }
  /// What only one step leaves: A or the first rank.
  const std::vector<OnlyEnd>& only() const { return only_; }
  /// So many values of a group ("gradients") have names that both steps know.
  std::int64_t ends(const std::string& group) const;

  /// Runs A with changed last bits, so often. Before `run`.
  void look_at_rounding(int times);
  Apart limit(const WrittenPlace& place) const { return rounding_->limit(place); }
  /// The farthest that rounding brings an end of this group.
  double limit_of(const std::string& group) const;

  /// A with `edits` beside all ranks; `samples`: of each rank (Ways).
  RankPass run(const Edits& edits, std::int64_t samples) const;

 private:
  /// One value that the steps leave, in A and in the ranks that have it.
  struct RankEnd {
    std::string group, name;
    Place one;
    std::vector<std::pair<std::size_t, std::size_t>> parts;  ///< rank, index in what its run wants
  };
  using Results = std::vector<std::pair<RunResult, std::vector<at::Tensor>>>;

  void collect_rows();
  void collect_ends();
  void judge(std::size_t end, const Results& results, RankPass& pass) const;

  const Replayer& one_;
  const std::vector<Replayer>& ranks_;
  TraceGraph graph_;
  std::deque<TraceGraph> graphs_;
  Alignment alignment_;
  std::vector<std::vector<OpId>> rows_;     ///< op of each rank, op of A
  std::vector<RankEnd> ends_;               ///< in the order of what A's run wants
  std::vector<std::vector<Place>> wanted_;  ///< of each rank
  std::vector<OnlyEnd> only_;
  std::optional<Rounding> rounding_;
};

}  // namespace nanquest::diff
