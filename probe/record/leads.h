/// Leads: which ops led to the step that runs (lead.h): a stretch of ops recorded by itself between two steps,
/// or the step before, where its record goes on until the next one begins. No tape.
///
///     if (Step* lead = leads.begin(17)) …      // the update of step 17 is over: ops go into `lead`
///     if (leads.running() && leads.too_long()) …     // drop it
///     leads.step_begins();                     // leads.led() led to this step
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "probe/record/step.h"

namespace nanquest::record {

/// What leads to a step is recorded as long as it has no more ops and keeps no more bytes alive: a longer
/// stretch is an evaluation, or a loader. After such a one none is recorded for so many updates.
inline constexpr std::size_t kMostLeadOps = 512;
inline constexpr std::uint64_t kMostLeadBytes = std::uint64_t{64} << 20;
inline constexpr int kNoLeadsAfter = 32;

class Leads {
 public:
  /// A stretch begins after the update of the step with this number. Nothing may be running. Returns where
  /// its ops go; null while none are recorded.
  Step* begin(std::int64_t number);
  /// Ops go into a stretch.
  bool running() const { return running_; }
  /// The stretch that runs is too long to lead to a step.
  bool too_long() const;
  /// … so that none is recorded for some updates.
  void rest() { rest_ = kNoLeadsAfter; }
  /// A step begins: the stretch is complete. Returns whether one was running.
  bool step_begins();
  /// The record of `step`, which is over, goes on until the next one begins.
  void goes_on(Step& step) { led_ = &step; }
  /// What led to the running step; null if there is nothing, or not all of it.
  Step* led() const { return led_; }
  /// The stretch before the last one, as a template.
  const Step& before() const { return stretches_[1 - last_]; }
  /// Drops what there is; steps that are `kept` stay. Returns whether a stretch was running.
  bool drop(const std::vector<Step*>& kept);
  std::size_t memory() const;

 private:
  Step stretches_[2];
  int last_ = 0;
  bool running_ = false;
  int rest_ = 0;         // for so many updates, since the last one was too long
  Step* led_ = nullptr;  // the last stretch, or the step before
};

}  // namespace nanquest::record
