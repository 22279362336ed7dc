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

/// Hears the findings of all causes that explain the case. A claim is refuted if a change that must not help
/// by its own word (Finding::unmoved) helps; of several claims also if none of what it predicts to help does.
/// Two that are left cancel each other.
Decision decide(const Case& c, std::vector<Finding> found);

}  // namespace nanquest
