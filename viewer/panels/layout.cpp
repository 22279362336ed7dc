#include "viewer/panels/layout.h"

#include "imgui_internal.h"

namespace nanquest::viewer {

#ifdef IMGUI_HAS_DOCK
void build_layout(ImGuiID space, ImVec2 size) {
  ImGui::DockBuilderRemoveNode(space);
  ImGui::DockBuilderAddNode(space, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(space, size);
  ImGuiID left = 0, right = 0, nodes[6] = {};
  const auto node = [&](Place place) -> ImGuiID& { return nodes[static_cast<int>(place)]; };
  const auto split = [](ImGuiID what, ImGuiDir side, float share, ImGuiID& there, ImGuiID& rest) {
    ImGui::DockBuilderSplitNode(what, side, share, &there, &rest);
  };
  split(space, ImGuiDir_Left, 0.37f, left, right);
  split(left, ImGuiDir_Up, 0.64f, node(Place::left_top), node(Place::left_bottom));
  ImGuiID lower = 0, bottom = 0;
  split(right, ImGuiDir_Up, 0.29f, node(Place::right_top), lower);
  split(lower, ImGuiDir_Up, 0.48f, node(Place::right_middle), bottom);
  split(bottom, ImGuiDir_Right, 0.38f, node(Place::right_corner), node(Place::right_bottom));
  for (const PanelInfo& panel : all_panels()) ImGui::DockBuilderDockWindow(panel.title, node(panel.place));
  ImGui::DockBuilderFinish(space);
  // Of those that share a place the last in the list is in front.
  for (const PanelInfo& panel : all_panels()) {
    const ImGuiID window = ImHashStr(panel.title);
    ImGui::DockBuilderGetNode(node(panel.place))->SelectedTabId = ImHashStr("#TAB", 0, window);
  }
}
#else
void place_panel(Place place, ImVec2 origin, ImVec2 size, bool again) {
  constexpr float boxes[6][4] = {{0, 0, 0.37f, 0.64f},         {0, 0.64f, 0.37f, 0.36f},
                                 {0.37f, 0, 0.63f, 0.29f},     {0.37f, 0.29f, 0.63f, 0.34f},
                                 {0.37f, 0.63f, 0.39f, 0.37f}, {0.76f, 0.63f, 0.24f, 0.37f}};
  const float* box = boxes[static_cast<int>(place)];
  const ImGuiCond when = again ? ImGuiCond_Always : ImGuiCond_FirstUseEver;
  ImGui::SetNextWindowPos({origin.x + box[0] * size.x, origin.y + box[1] * size.y}, when);
  ImGui::SetNextWindowSize({box[2] * size.x, box[3] * size.y}, when);
}
#endif

}  // namespace nanquest::viewer
