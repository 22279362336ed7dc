/// reason: why an op of A gives another value than its partner in B, by trying what could make it give the
/// same.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "replay/diff/align.h"
#include "replay/diff/edits.h"
#include "replay/diff/report.h"
#include "replay/diff/rounding.h"

namespace nanquest::diff {

/// Both steps, and how they belong together. What it refers to must outlive it.
struct Steps {
  const Replayer &a, &b;
  const TraceGraph &graph_a, &graph_b;
  const Alignment& alignment;
  Precision precision = Precision::as_recorded;
};

/// A pair whose values are beyond rounding, the first in the step.
struct FirstBeyond {
  OpPair pair;
  std::int32_t entry = 0;  ///< of what both wrote
  Apart found, limit;
};

/// Looks for what makes the difference at `first`, in A with `edits`: numbers that the program passed (at
/// this op or before it), random numbers, what the op computes from. Each candidate is tried; the first with
/// which A gives B's value is put into `edits`. If none does, B's value itself is, and the finding says no
/// more than where. Of other operations and inputs, number formats are tried too (formats.h).
Finding find_reason(const Steps& steps, const FirstBeyond& first, Edits& edits, const Edits& edits_of_b);

/// A finding at this op of A, without what differs there.
Finding at_op(const Steps& steps, OpId op);

/// "aten::addmm in blocks.1 (op 34)".
std::string words_of(const TraceGraph& graph, OpId op);

}  // namespace nanquest::diff
