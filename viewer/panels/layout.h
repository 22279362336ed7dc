/// Where the panels stand by default. Private to viewer/panels.
#pragma once

#include "imgui.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {

#ifdef IMGUI_HAS_DOCK
/// Each panel into the node of its place: verdict and runs on the left, what they are about on the right.
void build_layout(ImGuiID space, ImVec2 size);
#else
/// The same arrangement as fixed places, for a Dear ImGui without docking: of the next window.
void place_panel(Place place, ImVec2 origin, ImVec2 size, bool again);
#endif

}  // namespace nanquest::viewer
