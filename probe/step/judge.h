/// StepJudge: what loss and gradients say of a step. One rule for our own loops and for foreign programs.
///
/// A step is good; or its loss scale overflowed (calibration: the scaler lowers its scale and training goes
/// on, however often); or it is not finite. At the scaler's lowest scale an overflow is not calibration any
/// more: the gradients themselves leave the format.
#pragma once

#include <cstdint>

#include "probe/snapshot/model.h"
#include "probe/step/facts.h"
#include "probe/step/gate.h"

namespace nanquest {

/// What is known at the gate besides loss and gradients.
struct GateFacts {
  double loss_scale = 1;        ///< the factor that the loss was multiplied by
  bool scaler_acts = false;     ///< a loss scaler lowers its scale and skips this update if needed
  bool norm_bad = false;        ///< the norm used for clipping was NaN or Inf
  double min_loss_scale = 1.0;  ///< an overflow at this scale or below is an incident
};

class StepJudge {
 public:
  /// The gate's answer: ok, scale_overflow or non_finite.
  Gate judge(const GateResult& seen, const GateFacts& facts);

  /// Number of overflows in a row, returned once in a row, after kSayAfter. Otherwise nothing.
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
