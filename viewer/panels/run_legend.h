/// What is said of several runs above their curves.
#pragma once

#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// While runs are beside the open one, or curves are smoothed: how the line of each run looks, and how much
/// is smoothed. Nothing otherwise.
void draw_run_legend(UiState& state);

/// "Smooth curves more", "… less", "Do not smooth curves", as far as they change anything.
void add_smoothing(UiState& state, std::vector<Action>& out);

}  // namespace nanquest::viewer
