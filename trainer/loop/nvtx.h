/// Room trainer/loop: the phases of a step as ranges for a profiler.
#pragma once

namespace nanquest::trainer {

/// An NVTX range of this thread for the time it lives ("forward", "optimizer", …). Free when no profiler is
/// attached; nothing at all where the NVTX headers were missing at build time.
class PhaseRange {
 public:
  explicit PhaseRange(const char* name);
  ~PhaseRange();
  PhaseRange(const PhaseRange&) = delete;
  PhaseRange& operator=(const PhaseRange&) = delete;
};

/// Whether ranges are compiled in.
bool has_phase_ranges();

}  // namespace nanquest::trainer
