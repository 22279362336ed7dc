/// collective: computes what a recorded collective gives out of what the ranks of its group gave in, and
/// holds it against what was recorded.
///
/// Exact is what has one result whatever the order: copies, integers, min and max, bit operations, and a sum
/// or product of two. A floating-point sum of more may have been added up in any order and grouping: it is
/// held against the sum in fp64, within (n - 1) u Σ|x| / (1 - (n - 1) u), u the unit roundoff of its format
/// (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2), n the number of ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "probe/trace/collective_call.h"

namespace nanquest::trace {

/// What one rank gives: a 1-D tensor per item of its call, contiguous, its own memory.
using Given = std::vector<at::Tensor>;

/// What one rank of a group gets, a 1-D tensor per item, and how far a recording may be off.
struct Expected {
  std::vector<at::Tensor> values;  ///< in the format of the inputs
  std::vector<at::Tensor> bounds;  ///< per element, fp64; undefined: exact
  /// Elements that may as well have left the format's range (fp64 sum of magnitudes beyond it); undefined:
  /// none.
  std::vector<at::Tensor> may_overflow;
};

/// What the rank at `place` of the group gets. `given`: of every member, in the group's order; of a broadcast
/// only the root's needs to be there. Throws std::runtime_error with a sentence if the inputs don't fit
/// together, or the reduction is not known.
Expected collective_result(const CollectiveCall& call, const std::vector<Given>& given, std::size_t place);

enum class Match : std::uint8_t { exact, within, differs };

/// A recorded result against the computed one.
struct Matched {
  Match match = Match::exact;
  std::int64_t elements = 0, different = 0;  ///< compared; beyond their bounds
  std::int64_t first = -1;                   ///< the first of those, counted over all items
  double recorded = 0, computed = 0;         ///< there
  double distance = 0, bound = 0;            ///< the largest within its bound, and that bound
};

/// `recorded`: 1-D tensors, an item each. NaN matches NaN whatever its bits.
Matched hold_against(const Expected& expected, const std::vector<at::Tensor>& recorded);

}  // namespace nanquest::trace
