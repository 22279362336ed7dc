/// births: the rule that decides when an op made its bad values itself. The recorder uses it while ops run,
/// replay on values that it computes, and the tables afterwards.
///
/// A birth is an op with finite inputs that wrote a non-finite value. Inputs are the values that it uses
/// (TraceGraph::reads): not what it overwrites, and not memory that was never written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "probe/trace/ids.h"

namespace nanquest {

/// False for ops that can't have made their bad values: uninitialised memory, bytes from the host, results
/// that are kept because they can't be computed again (their inputs may be another process's), ops that
/// threw.
constexpr bool can_be_birth(std::uint32_t op_flags) {
  return !(op_flags & (kOpUninitialised | kOpHostWrite | kOpOpaque | kOpFailed));
}

/// True for ops whose results depend only on their inputs: no random numbers, either.
constexpr bool follows_from_inputs(std::uint32_t op_flags) {
  return can_be_birth(op_flags) && !(op_flags & kOpSeeded);
}

/// Limit of range overflows that are examined in one step. A step that failed at one place has few, and one
/// that failed everywhere is explained by its first ones.
inline constexpr int kMaxBirthsJudged = 64;

/// Which births of a step are computed again, one precision up. A birth from an infinite constant is not: it
/// is infinite there too. If an operator was non-finite there this often (logarithms of zeros, row after
/// row), the rest of its births are skipped, so they do not use up the places of overflows.
class BirthBudget {
 public:
  /// Whether to judge a birth by this operator.
  bool worth(std::string_view op) const {
    const auto known = stays_.find(op);
    return overflows_ < kMaxBirthsJudged && (known == stays_.end() || known->second < kMaxAlike);
  }
  /// Reports the result: whether it is finite one precision up.
  void judged(std::string_view op, bool finite) {
    if (finite)
      ++overflows_;
    else
      ++stays_.try_emplace(std::string(op), 0).first->second;
  }

 private:
  static constexpr int kMaxAlike = 32;
  int overflows_ = 0;
  std::map<std::string, int, std::less<>> stays_;
};

/// Non-finite numbers among an op's constant arguments.
struct BadConstants {
  bool nan = false, infinite = false;
  bool any() const { return nan || infinite; }
};
BadConstants bad_constants(const SnapshotDoc& doc, OpId op);

/// True if a constant shows that the op's infinities are intended (masked_fill with -inf): they come neither
/// from an overflow nor from an update, whose infinite constant is a bad setting (a learning rate).
bool are_meant_by_constant(const SnapshotDoc& doc, OpId op);

}  // namespace nanquest
