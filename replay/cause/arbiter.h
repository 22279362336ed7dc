/// arbiter: which of the causes that claim a case is right? Each predicts what would help and what would not;
/// the step is asked.
#pragma once

#include <vector>

#include "replay/cause/cause.h"

namespace nanquest {

/// What was decided, and every claim that was heard with the facts for and against it.
struct Decision {
  Finding finding;  ///< of the one that is left; label `unknown` if none or several are
  std::vector<Claim> claims;
};

/// Hears the findings of all causes that explain the case; `found` has their depth.
///
/// 1. A claim is refuted if a change that must not help by its own word (Finding::unmoved) helps.
/// 2. Of several, one that says which half of a wider format helps is held against the step with either half
///    alone: if it is right, the claims that said otherwise are refuted.
/// 3. Of several that are left, what they want to be changed is tried, the deepest first. The
///    first whose change helps is right. Where no change helps, the deepest is.
/// 4. Two of one depth that are left cancel each other: UNKNOWN names them, and what would tell them apart.
Decision decide(const Case& c, std::vector<Finding> found);

}  // namespace nanquest
