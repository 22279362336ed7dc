/// What a panel of ops or tensors shows while there are none. Private to viewer/panels.
#pragma once

#include "viewer/model/session.h"

namespace nanquest::viewer {

/// Draws `nothing_page`: why nothing can be shown, and of a run without an incident what there is to know.
void draw_nothing(const Session& session);

}  // namespace nanquest::viewer
