/// watch: looks at what every op writes, and at what went in when something bad came out.
///
/// Inputs are looked at only when an output is bad, so a clean run pays for its outputs alone. What an op
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

/// Statistics and, if asked, the hash of a tensor, made as `kind` says; `scan` false gives the hash alone.
/// Empty for undefined tensors.
StatsRow measure(const at::Tensor& tensor, bool scan, bool hash, HashKind kind);

class Watch {
 public:
  Watch(const SnapshotDoc& doc, const TracePlan& plan) : doc_(doc), plan_(plan), slots_(doc.slots.size()) {}

  /// Before the op: `inputs` are the slots that it reads.
  void before(std::int32_t op, SlotStore& inputs);
  /// After the op: fills `result.ops[op].written` from `written` (one tensor per row of the written range)
  /// and the births and firsts of `result`.
  void after(std::int32_t op, SlotStore& inputs, const std::vector<at::Tensor>& written, bool scan, bool hash,
             RunResult& result);
  /// Bad elements that were last written to this slot.
  std::uint64_t bad_in(std::int32_t slot) const { return slots_[static_cast<std::size_t>(slot)].bad; }

 private:
  enum class State : std::uint8_t { unknown, clean, dirty };
  struct SlotState {
    State state = State::unknown;
    std::uint64_t bad = 0;
  };
  SlotState* slot(std::int32_t row);
  void note_write(std::int32_t row, const StatsRow& stats);
  void judge(std::int32_t op, SlotStore& inputs, const StatsRow& sum, RunResult& result);

  const SnapshotDoc& doc_;
  const TracePlan& plan_;
  std::vector<SlotState> slots_;
  Badness overwritten_;  ///< of the arguments that the current op overwrites, before it does
};

}  // namespace nanquest::trace
