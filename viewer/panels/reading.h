/// What stands where something is being read: how far it is, and a button that ends it.
#pragma once

#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// "reading step 90, 40 %", a bar and Stop; nothing while nobody waits for anything. `wide`: on lines of its
/// own.
void draw_reading(UiState& state, bool wide);
/// A panel of a session of which nothing was read: what is going on, or why there is nothing to show.
void draw_nothing(UiState& state);

}  // namespace nanquest::viewer
