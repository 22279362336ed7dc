#include "viewer/panels/frame.h"

#include <cstddef>

#include "imgui.h"
#include "imgui_internal.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
namespace {

constexpr int kPanelCount = static_cast<int>(Panel::all);

#ifdef IMGUI_HAS_DOCK
/// Each panel into the node of its place: two above, three below.
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
/// The same arrangement as fixed places, for a Dear ImGui without docking.
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

}  // namespace

#define PANEL(name, title, place, needs) void draw_##name(UiState&);
#include "viewer/panels/list.inc"
#undef PANEL

void draw_panel(Panel panel, UiState& state) {
  switch (panel) {
#define PANEL(name, title, place, needs) \
  case Panel::name:                      \
    return draw_##name(state);
#include "viewer/panels/list.inc"
#undef PANEL
    case Panel::all:
      break;
  }
}

void Ui::draw() {
  if (state_.options.panel == Panel::all) draw_menu();
  if (!state_.options.still) shortcuts();
  draw_panels();
  if (help_) draw_help();
  if (!(state_.session.selection() == state_.seen)) {
    state_.scroll_to_op = state_.session.selection().op != state_.seen.op;
    state_.seen = state_.session.selection();
  }
}

void Ui::draw_menu() {
  if (!ImGui::BeginMainMenuBar()) return;
  if (ImGui::BeginMenu("View")) {
    if (ImGui::MenuItem("Reload", "Ctrl+R")) reload();
    if (ImGui::MenuItem("Default layout")) reset_layout();
    if (ImGui::MenuItem("Show all steps", "Home")) state_.show_all();
    ImGui::Separator();
    for (const PanelInfo& panel : all_panels())
      if (ImGui::MenuItem(panel.title)) focus_request_ = static_cast<int>(panel.panel);
    ImGui::Separator();
    if (ImGui::MenuItem("Keyboard", "?")) help_ = true;
    if (ImGui::MenuItem("Quit", "Ctrl+Q")) quit_ = true;
    ImGui::EndMenu();
  }
  ImGui::TextDisabled("|");
  std::string title = state_.session.title();
  if (const OpenIncident* incident = state_.session.incident())
    title += ", step " + std::to_string(incident->doc.step) + ", rank " + std::to_string(incident->doc.rank);
  ImGui::TextUnformatted(title.c_str());
  const std::string& lost = state_.session.lost();
  const std::string hint = !lost.empty()            ? lost
                           : state_.message.empty() ? "? shows the keys"
                                                    : state_.message;
  const float width = ImGui::CalcTextSize(hint.c_str()).x;
  ImGui::SameLine(ImGui::GetWindowWidth() - width - 2 * ImGui::GetStyle().WindowPadding.x);
  ImGui::TextColored(lost.empty() ? colour::muted : colour::orange, "%s", hint.c_str());
  ImGui::EndMainMenuBar();
}

void Ui::draw_panels() {
  const ImGuiViewport& viewport = *ImGui::GetMainViewport();
  if (state_.options.panel != Panel::all) {
    ImGui::SetNextWindowPos(viewport.WorkPos);
    ImGui::SetNextWindowSize(viewport.WorkSize);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(18, 14));
    for (const PanelInfo& entry : all_panels()) {
      if (entry.panel != state_.options.panel) continue;
      if (ImGui::Begin(
              entry.title, nullptr,
              ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings))
        draw_panel(entry.panel, state_);
      ImGui::End();
    }
    ImGui::PopStyleVar(2);
    return;
  }
#ifdef IMGUI_HAS_DOCK
  const ImGuiID space = ImGui::GetID("nanquest layout");
  const bool unknown = ImGui::DockBuilderGetNode(space) == nullptr;  // nothing was remembered
  if (!layout_made_ && (unknown || forget_layout_)) build_layout(space, viewport.WorkSize);
  ImGui::DockSpaceOverViewport(space, &viewport);
#endif
  for (const PanelInfo& entry : all_panels()) {
    const int i = static_cast<int>(entry.panel);
#ifndef IMGUI_HAS_DOCK
    place_panel(entry.place, viewport.WorkPos, viewport.WorkSize, forget_layout_);
#endif
    if (focus_request_ == i) ImGui::SetNextWindowFocus();
    if (ImGui::Begin(entry.title)) {
      if (ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) focused_ = i;
      draw_panel(entry.panel, state_);
    }
    ImGui::End();
  }
  focus_request_ = -1;
  layout_made_ = true;
  forget_layout_ = false;
}

void Ui::reload() {
  const Status status = state_.session.reload();
  state_.message = status ? "Reloaded" : status.error().text();
  state_.filtered_for.clear();
}

void Ui::step_panel(int by) {
  focus_request_ = (focused_ + by + kPanelCount) % kPanelCount;
}

void Ui::shortcuts() {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.KeyCtrl && ImGui::IsKeyPressed(ImGuiKey_R, false)) reload();
  if (io.KeyCtrl && ImGui::IsKeyPressed(ImGuiKey_Q, false)) quit_ = true;
  if (io.KeyCtrl && ImGui::IsKeyPressed(ImGuiKey_F, false)) {
    focus_request_ = static_cast<int>(Panel::trace);
    state_.focus_filter = true;
  }
  if (io.KeyCtrl || io.WantTextInput) return;
  if (ImGui::IsKeyPressed(ImGuiKey_Tab, false)) step_panel(io.KeyShift ? -1 : 1);
  for (const ImWchar c : io.InputQueueCharacters)
    if (c == '?') help_ = !help_;
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) help_ = false;
  if (ImGui::IsKeyPressed(ImGuiKey_Home, false)) state_.show_all();
  Session& session = state_.session;
  const OpenIncident* incident = session.incident();
  const OpId op{session.selection().op};
  if (incident == nullptr || !op) return;
  const auto walk = [&](OpId to) {
    if (to) session.select_op(to.row());
  };
  if (ImGui::IsKeyPressed(ImGuiKey_LeftBracket)) walk(incident->trace.walk_back(op));
  if (ImGui::IsKeyPressed(ImGuiKey_RightBracket)) walk(incident->trace.walk_forward(op));
  if (ImGui::IsKeyPressed(ImGuiKey_C, false) && incident->doc.culprit.op != kNone)
    session.select_op(incident->doc.culprit.op);
}

void Ui::draw_help() {
  constexpr const char* rows[][2] = {{"Tab, Shift+Tab", "next, previous panel"},
                                     {"Up, Down", "op before, after in the trace"},
                                     {"[ and ]", "to who made it, to who reads it"},
                                     {"C", "to the culprit"},
                                     {"Ctrl+F", "filter the ops"},
                                     {"Ctrl+R", "reload, the selection stays"},
                                     {"Home, double click", "show all steps and values"},
                                     {"Wheel, drag", "zoom, pan the steps of a plot"},
                                     {"Ctrl+wheel, Ctrl+drag", "zoom, pan the values of the lines"},
                                     {"Right drag", "zoom into a box"},
                                     {"Ctrl+Q", "quit"},
                                     {"?, Esc", "open, close this list"}};
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  if (ImGui::Begin("Keyboard", &help_,
                   ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoDocking |
                       ImGuiWindowFlags_NoSavedSettings) &&
      ImGui::BeginTable("keys", 2)) {
    for (const auto& row : rows) {
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(row[0]);
      ImGui::TableNextColumn();
      ImGui::TextDisabled("%s", row[1]);
    }
    ImGui::EndTable();
  }
  ImGui::End();
}

}  // namespace nanquest::viewer
