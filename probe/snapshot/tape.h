/// The tape in a snapshot: many steps, up to the incident, as one long trace that starts from its own initial
/// values. Plain tables, like the doc of the step itself (model.h), under "tape/" in the file. Since format
/// 2.3; code that reads only the step can ignore it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "probe/snapshot/model.h"

namespace nanquest {

/// One step of the tape. Ops are rows of TapeDoc::trace.ops.
struct TapeStep {
  std::int64_t step = 0;     ///< its number as the program counts
  std::int32_t gate = 0;     ///< the first op after its gate: from here on it is the update
  std::int32_t end = kNone;  ///< the first op after its update; kNone: there was none, or it had not ended
  std::int32_t loss_op = kNone;  ///< the op that last wrote its loss; kNone: not known
  std::int32_t loss = kNone;     ///< the tensor row of that op that is the loss
  double rate = 0;               ///< learning rate of its update
  double loss_value = 0;         ///< the loss that the gate saw
  /// If the program clips its gradients by a norm that it read on the host (a C++ loop, through
  /// StepReport::clip_coefficient): `clip` is the limit (0 otherwise) and `grad_norm` the norm of the
  /// gradients. Since format 2.4.
  double clip = 0, grad_norm = 0;
};

/// A number that an op returned to the host.
struct TapeRead {
  std::int32_t op = kNone;
  double value = 0;
  bool whole = false;  ///< a truth value or an integer, on which the program may branch
};

struct TapeDoc {
  /// The ops of all steps and those between them. `data` paths are under "tape/" in the file and start with
  /// it.
  SnapshotDoc trace;
  std::vector<TapeStep> steps;
  std::vector<TapeRead> reads;
};

/// Whether the host clipped a step of it.
bool has_clips(const TapeDoc& tape);

/// Where the tape's tables and values are in a file.
inline constexpr const char* kTapePrefix = "tape/";

/// Ok if every index is in range and steps and reads are in order; else `bad_file`. The trace itself is
/// checked like any doc's.
Status check_tape(const TapeDoc& tape);

}  // namespace nanquest
