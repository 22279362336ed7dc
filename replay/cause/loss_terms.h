/// loss_terms: which term is bad in a loss that is a sum.
#pragma once

#include <vector>

#include "replay/case/case.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// A number that is a summand of the loss, up to constant factors.
struct LossTerm {
  OpId maker;
  TensorId row;
  bool bad = false;
};

/// The terms of the step's loss, in the order of the ops that made them; fewer than two if it is no sum, if
/// it is unknown, or if a term came from outside.
std::vector<LossTerm> loss_terms(const Case& c);

/// Names the bad terms and the finite ones, if there are both.
void add_loss_terms(const Case& c, Verdict& v);

}  // namespace nanquest
