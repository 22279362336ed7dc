/// collective: computes the result of a recorded collective from the inputs of its group's ranks, and
/// compares it with the recorded one.
///
/// Exact are results that do not depend on the order: copies, integers, min and max, bit operations, and a
/// sum or product of two. A floating-point sum of more may have been added up in any order and grouping: it
/// is compared with the sum in fp64, within (n - 1) u Σ|x| / (1 - (n - 1) u), u the unit roundoff of its
/// format (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2), n the number of
/// ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "probe/trace/collective_call.h"

namespace nanquest::trace {

/// The input of one rank: a 1-D tensor per item of its call, contiguous, in memory of its own.
using Given = std::vector<at::Tensor>;

/// The result of one rank of a group, a 1-D tensor per item, and how far a recording may differ.
struct Expected {
  std::vector<at::Tensor> values;  ///< in the format of the inputs
  std::vector<at::Tensor> bounds;  ///< per element, fp64; undefined: exact
  /// Elements that may also have left the format's range (fp64 sum of magnitudes beyond it); undefined: none.
  std::vector<at::Tensor> may_overflow;
};

/// The result of the rank at `place` of the group. `given`: the inputs of every member, in the group's order;
/// for a broadcast only the root's is needed. Throws std::runtime_error with a sentence if the inputs don't
/// fit together, or the reduction is unknown.
Expected collective_result(const CollectiveCall& call, const std::vector<Given>& given, std::size_t place);

enum class Match : std::uint8_t { exact, within, differs };

/// A recorded result compared with the computed one.
struct Matched {
  Match match = Match::exact;
  std::int64_t elements = 0, different = 0;  ///< number compared; number beyond their bounds
  std::int64_t first = -1;                   ///< the first of those, counted over all items
  double recorded = 0, computed = 0;         ///< the values there
  double distance = 0, bound = 0;            ///< the largest difference within its bound, and that bound
};

/// `recorded`: 1-D tensors, one per item. NaN matches NaN whatever its bits.
Matched hold_against(const Expected& expected, const std::vector<at::Tensor>& recorded);

}  // namespace nanquest::trace
