/// figures: loss and gradient norm of a run of a recorded step, as its gate would have measured them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "probe/trace/graph.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// NaN: not known.
struct Figures {
  double loss = std::numeric_limits<double>::quiet_NaN();
  double norm = std::numeric_limits<double>::quiet_NaN();  ///< of all gradients, unscaled and not clipped
  std::string failed = {};                                 ///< why the run tells nothing, "" if it does
};

/// Measures runs of one trace, which may be a tape's: its last step is measured. `replayer` must outlive it.
class Measured {
 public:
  using Run = std::function<RunResult(const RunOptions&)>;
  /// The gradients that a run has made so far.
  struct Tally {
    double squares = 0;
    bool all = true;
  };

  explicit Measured(const Replayer& replayer);

  /// The figures of one run with `options`, made by `run`. Never throws.
  Figures of(const Run& run, RunOptions options) const;
  /// The same, run by the replayer itself from the start.
  Figures of(RunOptions options) const;

  /// For a run that something else makes: counts its gradients in `tally`, which must outlive the run.
  void watch(RunOptions& options, Tally& tally) const;
  /// Their norm; NaN if it is not known.
  double norm(const Tally& tally) const;

  const Replayer& replayer() const { return replayer_; }
  const TraceGraph& graph() const { return graph_; }

 private:
  /// Where a gradient has its last value of the backward pass: before it is unscaled, clipped or used.
  struct Gradient {
    std::size_t entry = 0;  ///< of the op's written range
    std::int32_t row = kNone;
  };

  const Replayer& replayer_;
  TraceGraph graph_;
  std::map<std::int32_t, std::vector<Gradient>> gradients_;  ///< by op
  bool norm_known_ = true;
};

}  // namespace nanquest
