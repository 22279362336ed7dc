/// ranks: which rank of a distributed run was first, from the files that the ranks wrote of the same step.
#pragma once

#include <optional>
#include <string>

#include "replay/case/case.h"
#include "replay/verdict/verdict.h"

namespace nanquest {

/// Nothing for a run of one process. Opens the other ranks' files of the step ("step-N.r*.h5" in the folder
/// of `snapshot`, the first 32); those that can't be read count as missing. Runs a step whose file has no
/// statistics. Takes the caller's RunScope for none. Never throws.
std::optional<Ranks> find_ranks(const Case& own, const std::string& snapshot);

}  // namespace nanquest
