/// hidden: follows range overflows that later ops hide, as the recorder does at level watch, in a run of the
/// trace.
#pragma once

#include "probe/snapshot/model.h"
#include "probe/tensor/hidden_overflow.h"
#include "replay/trace/machine.h"

namespace nanquest::trace {

/// Accompanies a run as recorded. Never throws: what can't be followed is not flagged.
class HiddenFollower {
 public:
  /// All must outlive it.
  HiddenFollower(const TracePlan& plan, Machine& machine) : plan_(plan), machine_(machine) {}

  /// Before the machine steps; does nothing while nothing is followed.
  void before(OpId op);
  /// After the step. `above`: the op's result one precision up, finite, if it is a birth; otherwise null.
  void after(OpId op, const StepOutcome* above);
  bool any() const { return overflows_.any(); }
  /// Flags the births by what became of them (OpFlag kOpHides…).
  void flag(SnapshotDoc& doc) const;

 private:
  const TracePlan& plan_;
  Machine& machine_;
  HiddenOverflows overflows_;
  HiddenOverflows::ReaderPtr reader_;
};

}  // namespace nanquest::trace
