/// earlier_rank: a weight that was bad when a step began, and that no step of this rank made so.
///
/// Where ranks average or copy weights between their steps, what one of them ruined begins the next step of
/// all. The files of one rank show no collective there: that it came so follows from the files of both, of a
/// step that left the tensor of that name bad on one rank, and of none that did on the other.
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

/// The last earlier step in whose file another rank left the parameter or buffer bad that `own`, the case of
/// `snapshot`, began with, and where that rank made it itself. Nothing if there is none, or if this rank left
/// it bad in that step or a later one. Opens the last 32 files of earlier steps in the folder of `snapshot`,
/// and runs their steps once. Takes the caller's RunScope for none.
std::optional<EarlierRank> find_earlier_rank(const Case& own, const std::string& snapshot);

}  // namespace nanquest
