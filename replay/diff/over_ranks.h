/// over_ranks: a step on one rank against the same step on several: the ranks' values are put together, and
/// compared.
#pragma once

#include <vector>

#include "probe/base/result.h"
#include "replay/diff/differ.h"

namespace nanquest::diff {

/// The report's A is `one` and its B the ranks, or, if `a_is_many`, the other way round. First what each was
/// given; then what the steps leave behind: loss, gradients, weights. If that agrees, the steps are alike. If
/// not, the first op is named whose value the ranks' values make up in none of the ways of made_up.h,
/// although its inputs are. `bad_file`: a step can't be run; `usage`: nothing of them could be put together.
Result<Report> compare_over_ranks(const Replayer& one, const std::vector<Replayer>& ranks, bool a_is_many,
                                  const Settings& settings);

}  // namespace nanquest::diff
