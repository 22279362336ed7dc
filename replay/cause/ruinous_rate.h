/// ruinous rate: one earlier update, made with an absurd learning rate, multiplied the weights with which the
/// step fails.
#pragma once

#include <optional>
#include <vector>

#include "replay/case/case.h"
#include "replay/counterfactual/change.h"
#include "replay/history/growth.h"

namespace nanquest {

struct RuinousRate {
  RateJump rate;            ///< of the update
  std::vector<Leap> leaps;  ///< the layers that it multiplied
  Change undone;            ///< their weights scaled back to their size before it: makes the step finite
};

/// The rate that is to blame for the culprit's bad values. Nothing unless the record shows all of it: an
/// update with an absurd rate multiplied weights from which the culprit is computed, the loss had not jumped
/// before it, the batch of the last healthy step is as bad with these weights, and the step is finite once
/// they have their earlier size again. Runs the step up to three times.
std::optional<RuinousRate> ruinous_rate(const Case& c);

}  // namespace nanquest
