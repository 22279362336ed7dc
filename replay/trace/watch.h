/// watch: looks at what every op writes, and at its inputs if something bad came out.
///
/// Inputs are looked at only if an output is bad, so a clean run pays for its outputs only. What an op
/// overwrites must be looked at before: that is done only if the slot may hold something bad.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "replay/trace/plan.h"
#include "replay/trace/replayer.h"
#include "replay/trace/slots.h"

namespace nanquest::trace {

/// Is there a NaN, is there anything non-finite?
struct Badness {
  bool nan = false, any = false;
  void add(const Badness& other) { nan = nan || other.nan, any = any || other.any; }
};

/// Badness of a tensor's values now; undefined and unreadable tensors are clean.
Badness badness(const at::Tensor& tensor);

/// Statistics and, if requested, the hash of a tensor, made as `kind` says; `scan` false gives only the hash.
/// Empty for undefined tensors.
StatsRow measure(const at::Tensor& tensor, bool scan, bool hash, HashKind kind);

class Watch {
 public:
  Watch(const SnapshotDoc& doc, const TracePlan& plan) : doc_(doc), plan_(plan), slots_(doc.slots.size()) {}

  /// Before the op: `inputs` are the slots that it reads.
  void before(OpId op, SlotStore& inputs);
  /// After the op: fills `result.ops[op].written` from `written` (one tensor per row of the written range)
  /// and the births and firsts of `result`.
  void after(OpId op, SlotStore& inputs, const std::vector<at::Tensor>& written, bool scan, bool hash,
             RunResult& result);
  /// Bad elements that were last written to this slot.
  std::uint64_t bad_in(SlotId slot) const { return slots_[slot].bad; }

 private:
  enum class State : std::uint8_t { unknown, clean, dirty };
  struct SlotState {
    State state = State::unknown;
    std::uint64_t bad = 0;
  };
  void note_write(TensorId row, const StatsRow& stats);
  void judge(OpId op, SlotStore& inputs, const BadCounts& wrote, RunResult& result);
  bool overwrites(OpId op, TensorId row) const;
  /// Of the op's input values: those in memory that it writes, or the others.
  Badness inputs_of(OpId op, SlotStore& inputs, bool overwritten) const;

  const SnapshotDoc& doc_;
  const TracePlan& plan_;
  PerRow<Slot, SlotState> slots_;
  Badness overwritten_;  ///< of the inputs that the current op overwrites, before it does
};

}  // namespace nanquest::trace
