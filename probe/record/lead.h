/// lead: the ops that a program ran between the last update and a step, as far as bad values that the step
/// reads were computed by them.
///
/// A step begins with its first forward pass. What the program computes before that (advantages that it
/// normalises, the degrees of a graph) is memory from outside for the step. Where such memory is bad and ops
/// on finite values made it so, these ops are put before the step's own: their operation is to blame then,
/// and not the data.
#pragma once

#include <cstdint>
#include <vector>

#include "probe/record/record.h"
#include "probe/trace/ids.h"

namespace nanquest::record {

/// The step before, and what its tables say of the memory of the present one.
struct LeadSource {
  const Recording& before;
  OpId first;                 ///< the first op after its update
  bool without_gap;           ///< its ops go on until the present step begins
  std::vector<SlotId> now;    ///< per slot of `before`: the same memory in the present step
  std::vector<bool> lost;     ///< per slot of `before`: its first values are not known
  std::vector<bool> changed;  ///< per slot of `before`: written after its last op
};

/// Puts such ops before those of `step`, whose tables are complete. Returns their number: 0 if what is bad
/// was bad before, if a constant of the program made it so, or if these ops can't be run again from what is
/// recorded. The number is also noted in the environment (kLeadOps), unless it is 0 and bad values may have
/// come from there all the same; where the step's own first values are is noted too (kLeadFound). With such
/// ops the step has no twin and no culprit, and is compared by what was alive.
std::int32_t add_lead(Recording& step, const LeadSource& source);

}  // namespace nanquest::record
