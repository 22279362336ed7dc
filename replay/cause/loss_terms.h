/// loss_terms: a loss that is a sum, and which of its terms is bad.
#pragma once

#include <vector>

#include "replay/case/case.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// A number that the loss is the sum of, up to constant factors.
struct LossTerm {
  OpId maker;
  TensorId row;
  bool bad = false;
};

/// The terms of the step's loss, in the order of their makers; fewer than two if it is no sum, if it isn't
/// known, or if a term came from outside.
std::vector<LossTerm> loss_terms(const Case& c);

/// Says which terms are bad and which are not, if both kinds are there.
void add_loss_terms(const Case& c, Verdict& v);

}  // namespace nanquest
