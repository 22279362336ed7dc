/// What changed first when a run's loss left its band: the learning rate, the gradients, or a layer's
/// weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "probe/snapshot/model.h"

namespace nanquest {

/// "the learning rate rose 10-fold at step 338, then the gradient norm grew 4-fold at step 339", by step; ""
/// if nothing did. `tables`: the history (history.h), oldest row first. `since`: the first step outside the
/// band.
std::string what_moved(const std::vector<SeriesTable>& tables, std::int64_t since);

}  // namespace nanquest
