/// earlier_rank: a weight that was bad when a step began, and that no step of this rank made bad.
///
/// If ranks average or copy weights between their steps, what one of them spoiled is in the next step of all.
/// The files of one rank show no collective there. It follows from the files of both: a step left the tensor
/// of that name bad on one rank, and no step did so on the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "replay/case/case.h"
#include "replay/cause/ranks.h"

namespace nanquest {

/// What an earlier step of another rank did.
struct EarlierRank {
  std::int64_t step = 0;
  RankPart part;
};

/// The last earlier step in whose file another rank left the parameter or buffer bad with which `own`, the
/// case of `snapshot`, began, and the place where that rank made it bad. Nothing if there is none, or if this
/// rank left it bad in that step or a later one. Opens the last 32 files of earlier steps in the folder of
/// `snapshot`, and runs their steps once. Must be called without a RunScope.
std::optional<EarlierRank> find_earlier_rank(const Case& own, const std::string& snapshot);

}  // namespace nanquest
