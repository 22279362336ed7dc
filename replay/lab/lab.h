/// Lab: runs a recorded step again and again, each time with one thing changed, and never repeats the part
/// before the change.
///
///     Lab lab(replayer);
///     RunOptions change;
///     change.edit.op_precision[op] = Precision::fp32;
///     RunResult run = lab.run(change);       // starts from a checkpoint just before `op`
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "replay/trace/replayer.h"

namespace nanquest {

/// The limits of a lab.
struct LabLimits {
  double seconds = 0;  ///< of all runs together (see Lab::spent); 0: 20 times the step, at least 30
  std::uint64_t checkpoint_bytes = std::uint64_t{2} << 30;  ///< bytes that checkpoints may keep alive
};

class Lab {
 public:
  /// `replayer` must outlive the lab.
  explicit Lab(const Replayer& replayer, LabLimits limits = {});

  /// The step with this change. Runs that change every op, and local runs, begin at the start. `on_op` is
  /// called for the ops from the first one that the change reaches, or from `seen_from` if that is earlier.
  /// Never throws.
  RunResult run(const RunOptions& options, std::int32_t seen_from = kNone);

  /// False once the time is used up, or after `stop`: searches end with what they have. Cheap to call.
  bool has_time() const { return !stopped() && spent() < seconds(); }
  /// Ends the searches of every lab of this process. May be called by a signal handler.
  static void stop() noexcept;
  static bool stopped() noexcept;
  /// Seconds since the lab was opened, and the limit: by the clock, or of the processor in all threads, whichever
  /// is less. On a busy machine the same is tried as on an idle one.
  double spent() const;
  double seconds() const;
  /// The step as recorded was run elsewhere, and took this long.
  void took(double seconds) { step_seconds_ = seconds; }
  /// Seconds that the step takes as recorded; 0 before it was run.
  double step_seconds() const { return step_seconds_; }
  /// Runs so far, and ops that they executed.
  int runs() const { return runs_; }
  std::int64_t ops_run() const { return ops_run_; }

  const TraceGraph& graph() const { return graph_; }
  const Replayer& replayer() const { return replayer_; }

 private:
  const Checkpoint* checkpoint_before(std::int32_t op);
  void make_room();

  const Replayer& replayer_;
  TraceGraph graph_;
  LabLimits limits_;
  std::vector<Checkpoint> checkpoints_;  ///< the last used one at the end
  std::chrono::steady_clock::time_point opened_;
  double processor_;  ///< seconds that the process had used by then
  double step_seconds_ = 0;
  int runs_ = 0;
  std::int64_t ops_run_ = 0;
};

}  // namespace nanquest
