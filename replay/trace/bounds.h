/// bounds: how near a step comes to its recording if another device computed it.
///
/// Devices round differently and add in another order, so bits can't be compared there. A file holds the
/// counts of a recorded value, its largest magnitude and its norm: these are compared. They must agree in NaN
/// and infinities, and to half of the digits of the coarsest format that the step has used so far: every
/// operation adds its own rounding, and a step has hundreds in a row.
#pragma once

#include <map>
#include <string>

#include "probe/snapshot/model.h"

namespace nanquest::trace {

/// Distance of two tensors that differ in kind: in the number of elements, of NaN or of infinities.
inline constexpr double kOtherKind = 1e300;

/// The larger of the relative differences of norm and largest magnitude; for integers and bool, of largest
/// magnitude and of the share of zeros. 0 for equal statistics.
double distance(DType type, const StatsRow& recorded, const StatsRow& now);

/// The bound at each place of a step, op after op.
class StepBound {
 public:
  /// `environment` says whether the recording may have multiplied fp32 with fewer digits (TF32).
  explicit StepBound(const std::map<std::string, std::string>& environment);
  /// Values of this type were read or written.
  void use(DType type);
  /// How far a value may be off from here on, relative: 0.00035 for fp32, 0.031 for fp16 and TF32, 0.088 for
  /// bf16.
  double now() const { return bound_; }

 private:
  bool tf32_;
  double bound_ = 0;
};

}  // namespace nanquest::trace
