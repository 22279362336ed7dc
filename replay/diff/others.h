/// others: results that come from other processes. Replay takes them as recorded, so what the step computes
/// before them does not reach them.
#pragma once

#include <vector>

#include "replay/diff/reason.h"

namespace nanquest::diff {

/// True for a pair of collectives.
bool is_from_others(const Steps& steps, const OpPair& pair);

/// Puts what all collectives gave in B into A.
void put_in_results_of_others(const Steps& steps, const std::vector<OpPair>& pairs, Edits& edits);

}  // namespace nanquest::diff
