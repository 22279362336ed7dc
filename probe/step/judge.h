/// StepJudge: what loss and gradients say of a step. One rule for loops of ours and for foreign programs.
///
/// A step is good, or its loss scale overflowed (calibration: the scaler halves and goes on, however often it
/// takes), or it is not finite. At the scaler's floor an overflow is no calibration any more: the gradients
/// themselves leave the format.
#pragma once

#include <cstdint>

#include "probe/snapshot/model.h"
#include "probe/step/facts.h"
#include "probe/step/gate.h"

namespace nanquest {

/// What is known at the gate beside loss and gradients.
struct GateFacts {
  double loss_scale = 1;        ///< what the loss was multiplied with
  bool scaler_acts = false;     ///< a loss scaler lowers its scale and leaves this update out if it must
  bool norm_bad = false;        ///< the norm that the gradients were clipped by was NaN or Inf
  double min_loss_scale = 1.0;  ///< an overflow at or below it is an incident
};

class StepJudge {
 public:
  /// The gate's answer: ok, scale_overflow or non_finite.
  Gate judge(const GateResult& seen, const GateFacts& facts);

  /// Overflows in a row, when it is time to say so: once in a row, after kSayAfter. Nothing otherwise.
  Facts calibration() const;

  /// Overflows so far.
  std::int64_t overflows() const { return overflows_; }

 private:
  static constexpr int kSayAfter = 8;
  std::int64_t overflows_ = 0;
  int in_a_row_ = 0;
  double scale_ = 1;
};

}  // namespace nanquest
