#include "viewer/panels/layout.h"

#include <vector>

#include "imgui_internal.h"

namespace nanquest::viewer {

#ifdef IMGUI_HAS_DOCK
namespace {

/// Docks the boxes that fill `part`; splits the node until each has one of its own.
void fill_node(ImGuiID node, const Box& part, const std::vector<Tabs>& all) {
  if (const auto cut = cut_of(part, all)) {
    Box first = part, second = part;
    if (cut->upright) {
      first.width = cut->at - part.x;
      second.x = cut->at;
      second.width = part.width - first.width;
    } else {
      first.height = cut->at - part.y;
      second.y = cut->at;
      second.height = part.height - first.height;
    }
    const float share = cut->upright ? first.width / part.width : first.height / part.height;
    ImGuiID there = 0, rest = 0;
    ImGui::DockBuilderSplitNode(node, cut->upright ? ImGuiDir_Left : ImGuiDir_Up, share, &there, &rest);
    fill_node(there, first, all);
    return fill_node(rest, second, all);
  }
  for (const Tabs& tabs : all) {
    const float x = tabs.box.x + tabs.box.width / 2, y = tabs.box.y + tabs.box.height / 2;
    if (x < part.x || x > part.x + part.width || y < part.y || y > part.y + part.height) continue;
    for (const Panel panel : tabs.panels) ImGui::DockBuilderDockWindow(info_of(panel).title, node);
    // The node that the window is given to remembers its tab by the window's name.
    ImGui::DockBuilderGetNode(node)->SelectedTabId =
        ImHashStr("#TAB", 0, ImHashStr(info_of(tabs.front).title));
  }
}

}  // namespace

void build_layout(ImGuiID space, ImVec2 size, const LayoutInfo& layout) {
  ImGui::DockBuilderRemoveNode(space);
  ImGui::DockBuilderAddNode(space, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(space, size);
  fill_node(space, {}, tabs_of(layout));
  ImGui::DockBuilderFinish(space);
}

void show_tab(Panel panel) {
  ImGuiWindow* window = ImGui::FindWindowByName(info_of(panel).title);
  if (window == nullptr || window->DockNode == nullptr || window->DockNode->TabBar == nullptr) return;
  window->DockNode->TabBar->NextSelectedTabId = window->TabId;
  // A tab that has the keyboard stays in front, so it must give it up.
  const ImGuiWindow* focused = ImGui::GetCurrentContext()->NavWindow;
  if (focused != nullptr && focused->RootWindow->DockNode == window->DockNode) ImGui::FocusWindow(window);
}

std::vector<Panel> panels_in_front() {
  std::vector<Panel> seen;
  for (const PanelInfo& panel : all_panels())
    if (const ImGuiWindow* window = ImGui::FindWindowByName(panel.title);
        window != nullptr && window->Active && !window->Hidden)
      seen.push_back(panel.panel);
  return seen;
}
#else
void place_panel(const PanelInfo& panel, const LayoutInfo& layout, ImVec2 origin, ImVec2 size, bool again) {
  const Box& box = layout.boxes[static_cast<std::size_t>(panel.place)];
  const ImGuiCond when = again ? ImGuiCond_Always : ImGuiCond_FirstUseEver;
  ImGui::SetNextWindowPos({origin.x + box.x * size.x, origin.y + box.y * size.y}, when);
  ImGui::SetNextWindowSize({box.width * size.x, box.height * size.y}, when);
}
#endif

}  // namespace nanquest::viewer
