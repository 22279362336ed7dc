#include "viewer/panels/layout.h"

#include "imgui_internal.h"

namespace nanquest::viewer {

#ifdef IMGUI_HAS_DOCK
void build_layout(ImGuiID space, ImVec2 size) {
  ImGui::DockBuilderRemoveNode(space);
  ImGui::DockBuilderAddNode(space, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(space, size);
  ImGuiID top = 0, bottom = 0, nodes[5] = {};
  const auto node = [&](Place place) -> ImGuiID& { return nodes[static_cast<int>(place)]; };
  ImGui::DockBuilderSplitNode(space, ImGuiDir_Up, 0.55f, &top, &bottom);
  ImGui::DockBuilderSplitNode(top, ImGuiDir_Left, 0.44f, &node(Place::top_left), &node(Place::top_right));
  ImGui::DockBuilderSplitNode(bottom, ImGuiDir_Left, 0.22f, &node(Place::bottom_left), &bottom);
  ImGui::DockBuilderSplitNode(bottom, ImGuiDir_Right, 0.36f, &node(Place::bottom_right),
                              &node(Place::bottom_middle));
  for (const PanelInfo& panel : all_panels()) ImGui::DockBuilderDockWindow(panel.title, node(panel.place));
  ImGui::DockBuilderFinish(space);
}
#else
void place_panel(Place place, ImVec2 origin, ImVec2 size, bool again) {
  constexpr float boxes[5][4] = {{0, 0, 0.44f, 0.55f},
                                 {0.44f, 0, 0.56f, 0.55f},
                                 {0, 0.55f, 0.22f, 0.45f},
                                 {0.22f, 0.55f, 0.42f, 0.45f},
                                 {0.64f, 0.55f, 0.36f, 0.45f}};
  const float* box = boxes[static_cast<int>(place)];
  const ImGuiCond when = again ? ImGuiCond_Always : ImGuiCond_FirstUseEver;
  ImGui::SetNextWindowPos({origin.x + box[0] * size.x, origin.y + box[1] * size.y}, when);
  ImGui::SetNextWindowSize({box[2] * size.x, box[3] * size.y}, when);
}
#endif

}  // namespace nanquest::viewer
