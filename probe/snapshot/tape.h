/// The tape in a snapshot: many steps, up to the incident, as one long trace that runs on from its own
/// beginning. Plain tables, like the doc of the step itself (model.h), under "tape/" in the file. Since
/// format 2.3; what reads the step alone need not know of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "probe/snapshot/model.h"

namespace nanquest {

/// One step of the tape. Ops are rows of TapeDoc::trace.ops.
struct TapeStep {
  std::int64_t step = 0;         ///< its number, as the program counts
  std::int32_t gate = 0;         ///< the first op after its gate: what follows is its update
  std::int32_t end = kNone;      ///< the first op after its update; kNone: it was not made, or not yet over
  std::int32_t loss_op = kNone;  ///< the op that wrote its loss last; kNone: nobody knows
  std::int32_t loss = kNone;     ///< the tensor row of that op that is the loss
  double rate = 0;               ///< learning rate of its update
  double loss_value = 0;         ///< what the gate saw as its loss
  /// Where the program clips its gradients by a norm that it read on the host (a C++ loop, by
  /// StepReport::clip_coefficient): the norm it clips to, 0 elsewhere, and what the gradients' was. Since
  /// format 2.4.
  double clip = 0, grad_norm = 0;
};

/// A number that an op gave to the host.
struct TapeRead {
  std::int32_t op = kNone;
  double value = 0;
  bool whole = false;  ///< a truth value or an integer: what the program decides by
};

struct TapeDoc {
  /// The ops of all steps, with what ran between them. `data` paths lie under "tape/" in the file, and say
  /// so.
  SnapshotDoc trace;
  std::vector<TapeStep> steps;
  std::vector<TapeRead> reads;
};

/// Whether a step of it was clipped by the host.
bool has_clips(const TapeDoc& tape);

/// Where in a file the tape's tables and values are.
inline constexpr const char* kTapePrefix = "tape/";

/// Ok if every index is in range and steps and reads come in order; else `bad_file`. The trace itself is
/// asked for as that of any doc.
Status check_tape(const TapeDoc& tape);

}  // namespace nanquest
