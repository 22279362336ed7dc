/// compare: how far a changed run differs from the recorded one, op by op.
///
/// Two runs go in lockstep (lockstep.h): one exactly as recorded, one in another precision. Every tensor that
/// an op wrote is compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "replay/trace/replayer.h"

namespace nanquest {

/// How two tensors differ. Elements that are NaN on both sides, or the same infinity, count as equal.
struct TensorDifference {
  std::uint64_t count = 0;      ///< elements compared
  std::uint64_t different = 0;  ///< elements whose values differ
  std::uint64_t non_finite_recorded = 0, non_finite_other = 0;
  double max_abs = 0;  ///< largest |other - recorded| over elements finite on both sides
  double max_rel = 0;  ///< largest |other - recorded| / |other|, where other is not 0
  /// Largest distance in units in the last place of the recorded format, after rounding `other` to it; 0 for
  /// integers.
  double max_ulp = 0;
  double squares_recorded = 0,
         squares_apart = 0;  ///< sums over elements finite on both sides; 0 for integers
  double amax_recorded = 0;  ///< largest |recorded| of those; 0 for integers
  std::int64_t worst = -1;   ///< logical index of the largest absolute difference, or of the first element
                             ///< that is finite on one side only; -1 if nothing differs
};

/// One tensor that one op wrote.
struct CompareRow {
  std::int32_t op = kNone;      ///< row of doc.ops
  std::int32_t tensor = kNone;  ///< row of doc.tensors
  TensorDifference difference;
};

struct CompareResult {
  std::vector<CompareRow> rows;                  ///< in order of execution
  RunResult other;                               ///< the changed run (statistics included)
  std::int32_t first_difference = kNone;         ///< first op with an element that differs
  std::int32_t first_finiteness_change = kNone;  ///< first op that is finite on one side only
};

/// Difference of two tensors of equal shape; dtypes may differ. `recorded` decides the format that ULPs are
/// counted in. Integers and bool are compared exactly. Any strided CPU tensors; allocates fp64 copies.
TensorDifference tensor_difference(const at::Tensor& recorded, const at::Tensor& other);

/// Runs as recorded and with `options` in lockstep. `options.local` is honoured. Fails only if the snapshot's
/// outside values can't be read; failed ops are in `other` and have no row.
Result<CompareResult> compare(const Replayer& replayer, const RunOptions& options);

}  // namespace nanquest
