/// UpdateGovernor: which updates are recorded, with the values that the optimizer overwrites? That costs
/// memory for about three times the parameters a step, the time to copy it and to record the optimizer's ops;
/// the governor keeps the time under a share of the step's and the memory under a share of what is free.
///
///     if (governor.wants(bytes)) trace.begin_update(true);
///     … optimizer.step() …
///     governor.kept(trace.update_cost());
///     governor.step_took(seconds);
///     say(governor.announcement());   // once, if it takes memory that somebody would miss
///     say(governor.complaint());      // once, if not every step can be kept
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "probe/record/step.h"

namespace nanquest {

struct GovernorOptions {
  int keep_steps = 2;          ///< 0: values are never kept
  double time_share = 0.01;    ///< of a step, for recording its update; 0: never
  double trifle = 100e-6;      ///< seconds that nobody misses, whatever share of a step they are
  double memory_share = 0.25;  ///< of the memory that is free when the first values are kept
  int seldom = 64;             ///< a step in so many is worth nothing: then none
};

class UpdateGovernor {
 public:
  explicit UpdateGovernor(GovernorOptions options) : options_(options) {}

  /// Whether the values of an update that overwrites about so many bytes may be kept at all, as far as memory
  /// goes. `device`: where they lie, and are kept.
  bool affords(std::uint64_t bytes, at::Device device = at::kCPU);
  /// Whether the coming update's values should be kept. `bytes`: what it will overwrite, about.
  bool wants(std::uint64_t bytes, at::Device device = at::kCPU);
  /// What keeping cost, for a step for which `wants` said yes. Copying counts twice: what it drives out of
  /// the caches costs the program about as much again (ResNet-50: 11 ms a step of copying, 21 ms longer
  /// steps).
  void kept(const record::UpdateCost& cost);
  /// How long a step took from its beginning to the next one's.
  void step_took(double seconds);
  /// How much memory will be taken, of how much; once, when it is known and worth a word, otherwise "".
  std::string announcement();
  /// Why not every step's values are kept, in words; once, otherwise "".
  std::string complaint();
  /// The same at any time, "" if every step's values are kept.
  const std::string& reason() const { return reason_; }

 private:
  /// How long recording an update may take.
  double allowed() const;

  GovernorOptions options_;
  bool refused_ = false, told_ = false, announced_ = false;
  std::uint64_t bytes_ = 0;
  double wanted_ = 0, free_ = 0;
  at::Device device_ = at::kCPU;                  // whose memory that is
  double keep_seconds_ = -1, step_seconds_ = -1;  // < 0: not known yet
  int every_ = 1, since_ = 0;
  std::string reason_;
};

/// Bytes that a process can still get: of a CPU's memory the machine's, or its control group's if that is
/// less, divided by `processes_here()`, as all of them ask; of a device's what its allocator tells. 0 if
/// unknown.
std::uint64_t free_memory(at::Device device = at::kCPU);
/// How many processes of this training run on this machine, as their launcher says in a variable of the
/// environment; 1 where none does.
int processes_here();
/// So many bytes for a reader: "12 MB", "3.4 GB".
std::string amount(double bytes);

}  // namespace nanquest
