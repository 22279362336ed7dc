/// ranks: which rank of a distributed run was first, from the files that the ranks wrote of the same step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/case/case.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// What one rank's file says of the step.
struct RankPart {
  std::int32_t rank = 0;
  std::string file;
  bool harmed = false;  ///< a culprit was found
  bool local = false;   ///< … and it is not the result of a collective
  Origin origin = Origin::op;
  std::int32_t op = kNone;  ///< that made it, or that read it first
  std::string name, module, tensor, part, pass;
  int collectives = 0;  ///< before the culprit: the only order that all ranks share
  /// Its first transfer is a receive: what looks like its input may be what was received.
  bool fed = false;
};

RankPart rank_part(const Case& c, const std::string& file);

/// The first of those that are local; null if there is none.
const RankPart* first_part(const std::vector<RankPart>& parts);

/// As verdicts name it.
RankCulprit culprit_of(const RankPart& part);

/// Nothing for a run of one process. Opens the other ranks' files of the step ("step-N.r*.h5" in the folder
/// of `snapshot`, the first 32); those that can't be read count as missing. Runs a step whose file has no
/// statistics. Must be called without a RunScope. Never throws.
std::optional<Ranks> find_ranks(const Case& own, const std::string& snapshot);

}  // namespace nanquest
