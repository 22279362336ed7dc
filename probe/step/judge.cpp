#include "probe/step/judge.h"

#include <cmath>
#include <cstdio>

#include "probe/step/one_line.h"

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

std::string StepJudge::calibration() const {
  if (in_a_row_ != kSayAfter) return "";
  char text[160];
  std::snprintf(
      text, sizeof text,
      "the loss scale overflowed in %d steps in a row (it was %g): the scaler is still looking for its "
      "scale, these updates are left out",
      in_a_row_, scale_);
  return text;
}

std::string loss_sentence(double loss) {
  return std::isnan(loss) ? "the loss is NaN" : "the loss is infinite";
}

std::string sentence(const GateResult& seen, bool norm_bad) {
  std::string line;
  if (!std::isfinite(seen.loss)) line = loss_sentence(seen.loss);
  if (seen.non_finite > 0) {
    if (!line.empty()) line += ", ";
    line += std::to_string(seen.non_finite) + " gradient elements are NaN or Inf";
  } else if (line.empty() && norm_bad) {
    line = "the norm that the gradients were clipped by was not finite, although they were";
  } else if (line.empty()) {
    line = "the norm of the gradients overflows";
  }
  return line;
}

}  // namespace nanquest
