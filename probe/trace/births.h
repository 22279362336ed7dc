/// births: the rule for when an op made its bad values itself, for whoever looks: the recorder as ops go by,
/// replay on values that it computes, the tables afterwards.
///
/// A birth is an op whose inputs are finite and which wrote something that is not. Inputs are the values that
/// it takes in (TraceGraph::reads): not what it overwrites, not memory that nobody has written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "probe/trace/ids.h"

namespace nanquest {

/// False for ops whose bad values are not their own doing: memory handed out unwritten, bytes from the host,
/// what was kept because it can't be computed again (its inputs may be another process's), ops that threw.
constexpr bool can_be_birth(std::uint32_t op_flags) {
  return !(op_flags & (kOpUninitialised | kOpHostWrite | kOpOpaque | kOpFailed));
}

/// True for ops whose results follow from what they were given and nothing else: no random numbers, either.
constexpr bool follows_from_inputs(std::uint32_t op_flags) {
  return can_be_birth(op_flags) && !(op_flags & kOpSeeded);
}

/// As many range overflows are looked at closely in one step: a step that went wrong at one place has few, and
/// one that went wrong everywhere is told by its first ones.
inline constexpr int kMaxBirthsJudged = 64;

/// Which births of a step are computed once more, one precision up. What an infinite constant made need not be:
/// it is infinite up there too. Of an operator that made the same up there so often (logarithms of zeros, row
/// after row) the rest is left alone; so none of these takes the place of an overflow.
class BirthBudget {
 public:
  /// Whether a birth by this operator is to be judged.
  bool worth(std::string_view op) const {
    const auto known = stays_.find(op);
    return overflows_ < kMaxBirthsJudged && (known == stays_.end() || known->second < kMaxAlike);
  }
  /// It was: whether it is finite one precision up.
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

/// True if a constant says that the op's infinities are meant (masked_fill with -inf): they come of no
/// overflow, and not of an update, whose infinite constant is a bad setting (a learning rate).
bool are_meant_by_constant(const SnapshotDoc& doc, OpId op);

}  // namespace nanquest
