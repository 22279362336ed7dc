/// aftermath: what became of a run's loss after a step in which it was far out of its usual range.
///
/// The steps just before show what was usual: their median and their largest loss. Between a loss that is
/// usual again and one that is far out for nearly all of the time lies much for which neither can be said.
#pragma once

#include <cstdint>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

enum class Aftermath : std::uint8_t {
  open,       ///< neither, or the run has too few steps before or after it
  came_back,  ///< of the next 64 steps the last were as those before: some no higher, few far above
  left,       ///< nearly all of them, and of the last of them, were far above
};

/// Of the step `since`, with which the excursion began, by the loss of each step in `tables`: the history of
/// the whole run (probe/snapshot/series.h).
Aftermath aftermath_of(const std::vector<SeriesTable>& tables, std::int64_t since);

}  // namespace nanquest
