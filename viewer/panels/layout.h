/// The positions of the panels in a window. Private to viewer/panels.
#pragma once

#include "imgui.h"
#include "viewer/panels/layouts.h"

namespace nanquest::viewer {

#ifdef IMGUI_HAS_DOCK
/// Each panel into the node of its box.
void build_layout(ImGuiID space, ImVec2 size, const LayoutInfo& layout);
/// Brings a panel to the front of those that share its node; it gets the keyboard if the one before had it.
void show_tab(Panel panel);
/// The panels that can be seen: those that are no tab behind another.
std::vector<Panel> panels_in_front();
#else
/// The same arrangement as fixed positions, for a Dear ImGui without docking: for the next window.
void place_panel(const PanelInfo& panel, const LayoutInfo& layout, ImVec2 origin, ImVec2 size, bool again);
#endif

}  // namespace nanquest::viewer
