/// nearness: is a step that a change made finite also right? Compared with the same changed step in fp64.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// How a changed step differs from the same change in fp64.
struct Nearness {
  double loss = 0;       ///< |loss - loss in fp64| / |loss in fp64|, or the difference itself below 1
  double gradients = 0;  ///< |g - g in fp64| / |g in fp64| over all gradients together, Euclidean
  int bad = 0;           ///< ops with non-finite results that had none before, and have none in fp64
  int dead = 0;  ///< ops with only zeros as results that had others before, and have others in fp64, which
                 ///< are more than what rounding leaves of a difference of equal numbers
  bool known = false;  ///< false: the step can't be run in fp64, or isn't finite there
};

/// How far a step may be from fp64 and still count as right; both are compared with `Nearness`. 16-bit steps
/// 0.05 and 0.3, fp32 steps 0.001 and 0.01: chosen by hand, not calibrated yet.
struct NearnessLimits {
  double loss = 0, gradients = 0;
};
NearnessLimits nearness_limits(const TraceGraph& graph);

/// The reference for a step with this change: the change's edits of values only, gradients kept, in fp64 from
/// the first op that they reach (what came before is the recorded step's, with its rounding); all of it in
/// fp64 if only formats are changed.
RunOptions in_fp64(const TraceGraph& graph, const RunOptions& change);

/// What a run decided where rounding decides: the results of round, floor, ceil and trunc, and of
/// comparisons.
class Choices {
 public:
  explicit Choices(const TraceGraph& graph);
  /// False if the step decides nothing.
  bool any() const { return !ops_.empty(); }
  /// Lets `options` keep the results of these ops; this must outlive the run.
  void keep_in(RunOptions& options);
  /// `reference` with these results: numbers that were rounded to the neighbour, and comparisons of numbers
  /// that differ by no more than rounding. Either side is right there, and neither is an error.
  RunOptions put_into(RunOptions reference) const;

 private:
  const TraceGraph& graph_;
  std::vector<OpId> ops_;
  std::map<std::int32_t, std::vector<at::Tensor>> kept_;
};

/// Compares `run`, the step with a change, with `reference`, its run `in_fp64`; both with their gradients
/// kept. `recorded` is the step as recorded.
Nearness nearness(const TraceGraph& graph, const RunResult& recorded, const RunResult& run,
                  const RunResult& reference);

/// "" if it is near enough and nothing in it became zero or bad; otherwise what is wrong, for a sentence.
std::string why_not_near(const Nearness& n, const NearnessLimits& limits);

}  // namespace nanquest
