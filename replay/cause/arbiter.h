/// arbiter: which of the causes that claim a case is right? Each predicts which change helps and which does
/// not; these predictions are tested on the step.
#pragma once

#include <vector>

#include "replay/cause/cause.h"

namespace nanquest {

/// The decision, and every claim that was considered, with the facts for and against it.
struct Decision {
  Finding finding;  ///< of the remaining one; label `unknown` if none or several remain
  std::vector<Claim> claims;
};

/// Takes the findings of all causes that explain the case; `found` has their depth.
///
/// 1. A claim is refuted if a change helps that must not help by its own prediction (Finding::unmoved).
/// 2. If one of several claims says which half of a wider format helps, the step is run with either half
///    alone: if the claim is right, the claims that said otherwise are refuted.
/// 3. If several claims remain, the changes that they ask for are tried, the deepest claim first. The first
///    whose change helps is right. If no change helps, the deepest claim is.
/// 4. Two remaining claims of the same depth cancel each other: UNKNOWN names them, and what would
///    distinguish them.
Decision decide(const Case& c, std::vector<Finding> found);

}  // namespace nanquest
