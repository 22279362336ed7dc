/// UpdateGovernor decides which updates are recorded together with the values that the optimizer overwrites.
/// Doing so takes memory for about three times the parameters, and time to copy and to record the optimizer's
/// ops. The governor keeps the time below a share of the step's time and the memory below a share of what is
/// free.
///
///     if (governor.wants(bytes)) trace.begin_update(true);
///     … optimizer.step() …
///     governor.kept(trace.update_cost());
///     governor.step_took(seconds);
///     say(governor.announcement());   // once, if much memory is taken
///     say(governor.complaint());      // once, if not every step can be kept
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "probe/record/step.h"

namespace nanquest {

struct GovernorOptions {
  int keep_steps = 2;        ///< 0: values are never kept
  double time_share = 0.01;  ///< share of a step's time for recording its update; 0: never recorded
  double trifle =
      100e-6;  ///< seconds that are always allowed, whatever share of a step they are; three times
               ///< that if less than a MB is overwritten, where most of it is a busy machine's
  double memory_share = 0.25;  ///< share of the memory that is free when the first values are kept
  int seldom = 64;             ///< if fewer than one step in this many could be kept, none is
};

class UpdateGovernor {
 public:
  explicit UpdateGovernor(GovernorOptions options) : options_(options) {}

  /// Whether there is memory to keep the values of an update that overwrites about `bytes` bytes. `device`:
  /// where the values are, and are kept.
  bool has_room(std::uint64_t bytes, at::Device device = at::kCPU);
  /// The same, and it does not take so long that none is kept.
  bool affords(std::uint64_t bytes, at::Device device = at::kCPU);
  /// Whether this many bytes more may be held from a step's gate to the next one's.
  bool may_hold(std::uint64_t bytes, at::Device device);
  /// Whether to keep the coming update's values. `bytes`: about how much it will overwrite.
  bool wants(std::uint64_t bytes, at::Device device = at::kCPU);
  /// Reports what keeping cost, for a step for which `wants` returned true. Copy time counts twice: the
  /// copies evict the program's data from the caches, which costs about as much again (ResNet-50: 11 ms of
  /// copying made steps 21 ms longer).
  void kept(const record::UpdateCost& cost);
  /// Reports how long a step took, from its beginning to the beginning of the next.
  void step_took(double seconds);
  /// How much memory will be taken, of how much. Returned once, when it is known and worth telling; otherwise
  /// "".
  std::string announcement();
  /// Why not every step's values are kept. Returned once, otherwise "".
  std::string complaint();
  /// The same at any time; "" if every step's values are kept.
  const std::string& reason() const { return reason_; }

 private:
  /// Seconds that recording an update may take.
  double allowed() const;

  GovernorOptions options_;
  bool refused_ = false, too_slow_ = false, told_ = false, announced_ = false;
  std::uint64_t bytes_ = 0, held_ = 0, too_much_ = UINT64_MAX;  // may be held; may not
  double wanted_ = 0, free_ = 0;
  at::Device device_ = at::kCPU;                  // the device whose memory it is
  double keep_seconds_ = -1, step_seconds_ = -1;  // < 0: not known yet
  int every_ = 1, since_ = 0, measured_ = 0;
  std::string reason_;
};

/// Bytes that this process can still get. On a CPU: free memory of the machine or of the control group,
/// whichever is less, divided by `processes_here()`, since all of them ask. On a device: what its allocator
/// reports. 0 if unknown.
std::uint64_t free_memory(at::Device device = at::kCPU);
/// How many processes of this training run on this machine, from an environment variable of the launcher; 1
/// if there is none.
int processes_here();
/// A byte count as text: "12 MB", "3.4 GB".
std::string amount(double bytes);

}  // namespace nanquest
