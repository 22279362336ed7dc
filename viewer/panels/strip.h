/// The strip above all panels. Private to viewer/panels.
#pragma once

#include "viewer/model/strip.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// Draws it below the menu, over the whole width; panels get the space below it.
void draw_strip(UiState& state, const Strip& strip);

}  // namespace nanquest::viewer
