#include "probe/step/judge.h"

#include <cmath>

namespace nanquest {

Gate StepJudge::judge(const GateResult& seen, const GateFacts& facts) {
  const bool loss_finite = std::isfinite(seen.loss);
  if (loss_finite && seen.finite() && (!facts.norm_bad || facts.scaler_acts)) {
    in_a_row_ = 0;
    return Gate::ok;
  }
  // A scale of zero, infinity or NaN stays what it is when it is halved.
  const bool can_fall = facts.loss_scale > facts.min_loss_scale && std::isfinite(facts.loss_scale);
  if (!loss_finite || !facts.scaler_acts || !can_fall) return Gate::non_finite;
  ++overflows_;
  ++in_a_row_;
  scale_ = facts.loss_scale;
  return Gate::scale_overflow;
}

Facts StepJudge::calibration() const {
  if (in_a_row_ != kSayAfter) return {};
  return {{.kind = Fact::still_looking, .number = in_a_row_, .value = scale_}};
}

}  // namespace nanquest
