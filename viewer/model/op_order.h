/// The order of the trace panel's ops: as they ran, or by one of its columns.
#pragma once

#include <vector>

#include "viewer/model/incident.h"

namespace nanquest::viewer {

/// The columns of the trace panel, from left to right.
enum class TraceColumn {
  op,
  mark,
  name,
  module,
  phase,
  formats,
  read,
  written,
  headroom,
  non_finite,
  fp32,
  fp64,
  off,
  count
};

struct OpOrder {
  TraceColumn by = TraceColumn::op;
  bool largest_first = false;
  bool operator==(const OpOrder&) const = default;
};

/// Sorts `ops`. Those with nothing finite sort above all numbers; a difference in finiteness sorts above all
/// distances. Ops without a value in that column come last in both directions; equal ones stay in the order
/// in which they ran.
void sort_ops(const OpenIncident& incident, const OpOrder& order, std::vector<OpId>& ops);

}  // namespace nanquest::viewer
