/// births: the rule for when an op made its bad values itself, for whoever looks: the recorder as ops go by,
/// replay on values that it computes, the tables afterwards.
///
/// A birth is an op whose inputs are finite and which wrote something that is not. Inputs are the values that
/// it takes in (TraceGraph::reads): not what it overwrites, not memory that nobody has written.
#pragma once

#include <cstdint>

#include "probe/trace/ids.h"

namespace nanquest {

/// False for ops whose bad values are not their own doing: memory handed out unwritten, bytes from the host,
/// what was kept because it can't be computed again (its inputs may be another process's), ops that threw.
constexpr bool can_be_birth(std::uint32_t op_flags) {
  return !(op_flags & (kOpUninitialised | kOpHostWrite | kOpOpaque | kOpFailed));
}

/// As many are looked at closely in one step: a step that went wrong at one place has few births, and one
/// that went wrong everywhere is told by its first ones.
inline constexpr int kMaxBirthsJudged = 64;

/// Non-finite numbers among an op's constant arguments.
struct BadConstants {
  bool nan = false, infinite = false;
  bool any() const { return nan || infinite; }
};
BadConstants bad_constants(const SnapshotDoc& doc, OpId op);

}  // namespace nanquest
