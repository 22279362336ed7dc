/// harm: which values of a step must be finite, and whether they are in a run.
///
/// Harm is a loss, a gradient, or a weight, optimizer state or buffer that is not finite when the step ends
/// and was finite when it began. If nothing of this is bad, harm is an overflow that later ops hid
/// (probe/trace/hidden.h).
#pragma once

#include <cstdint>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/trace/replayer.h"

namespace nanquest {

class Harm {
 public:
  /// `recorded` is the run as recorded, with statistics.
  Harm(const TraceGraph& graph, const RunResult& recorded);

  /// True if the recorded step did harm that is visible at its end; false if an overflow was hidden.
  bool any() const { return any_; }
  /// True if the run shows none: what was bad is finite, and nothing else that counts has become bad. A run
  /// that was ended early (RunResult::decided_at) has failed.
  bool undone_by(const RunResult& run) const;

 private:
  /// The last write of something that is kept after the step: entry `entry` of the op's written range.
  struct LastWrite {
    OpId op;
    std::size_t entry = 0;
    std::uint64_t before = 0;  ///< non-finite elements at the beginning of the step
  };
  static bool bad(const RunResult& run, const LastWrite& write);

  int failed_ = 0;  ///< ops that failed in the run as recorded
  std::vector<LastWrite> writes_;
  std::vector<OpId> hidden_;  ///< ops whose overflows were hidden, if no harm is visible
  bool any_ = false;
};

}  // namespace nanquest
