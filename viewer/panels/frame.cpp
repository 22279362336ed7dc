#include "viewer/panels/frame.h"

#include <utility>

#include "imgui.h"
#include "imgui_internal.h"
#include "viewer/panels/layout.h"
#include "viewer/panels/strip.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {
#define PANEL(name, title, place, needs) std::unique_ptr<PanelView> name##_view();
#include "viewer/panels/list.inc"
#undef PANEL

Ui::Ui(Session& session, UiOptions options) : state_(session, options) {
#define PANEL(name, title, place, needs) views_.push_back(name##_view());
#include "viewer/panels/list.inc"
#undef PANEL
}

void Ui::draw() {
  if (state_.options.panel == Panel::all) {
    draw_menu();
    draw_strip(state_);
  }
  if (!state_.options.still) shortcuts();
  draw_panels();
  if (help_) draw_help();
  trail_.visit(state_.session.selection(), focused_);
}

void Ui::go_to(const Trail::Place* place) {
  if (place == nullptr) return;
  state_.session.restore(place->selection);
  state_.wanted = place->panel;
}

void Ui::draw_menu() {
  if (!ImGui::BeginMainMenuBar()) return;
  if (ImGui::BeginMenu("View")) {
    if (ImGui::MenuItem("Reload", "Ctrl+R")) reload();
    if (ImGui::MenuItem("Default layout")) reset_layout();
    if (ImGui::MenuItem("Show all steps", "Home")) state_.steps.show_all();
    ImGui::Separator();
    for (const PanelInfo& panel : all_panels())
      if (ImGui::MenuItem(panel.title)) state_.wanted = panel.panel;
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
        view(entry.panel).draw(state_);
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
  const std::optional<Panel> wanted = std::exchange(state_.wanted, std::nullopt);
  for (const PanelInfo& entry : all_panels()) {
#ifndef IMGUI_HAS_DOCK
    place_panel(entry.place, viewport.WorkPos, viewport.WorkSize, forget_layout_);
#endif
    if (wanted == entry.panel) ImGui::SetNextWindowFocus();
    if (ImGui::Begin(entry.title)) {
      if (ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) focused_ = entry.panel;
      view(entry.panel).draw(state_);
    }
    ImGui::End();
  }
  layout_made_ = true;
  forget_layout_ = false;
}

void Ui::reload() {
  const Status status = state_.session.reload();
  state_.message = status ? "Reloaded" : status.error().text();
}

void Ui::step_panel(int by) {
  const int count = static_cast<int>(views_.size());
  state_.wanted = static_cast<Panel>((static_cast<int>(focused_) + by + count) % count);
}

void Ui::shortcuts() {
  const ImGuiIO& io = ImGui::GetIO();
  if (io.KeyCtrl && ImGui::IsKeyPressed(ImGuiKey_R, false)) reload();
  if (io.KeyCtrl && ImGui::IsKeyPressed(ImGuiKey_Q, false)) quit_ = true;
  if (io.KeyCtrl && ImGui::IsKeyPressed(ImGuiKey_F, false)) {
    state_.wanted = Panel::trace;
    view(Panel::trace).find();
  }
  if (io.KeyAlt && ImGui::IsKeyPressed(ImGuiKey_LeftArrow)) go_to(trail_.back());
  if (io.KeyAlt && ImGui::IsKeyPressed(ImGuiKey_RightArrow)) go_to(trail_.forward());
  if (io.KeyCtrl || io.KeyAlt || io.WantTextInput) return;
  if (ImGui::IsKeyPressed(ImGuiKey_F, false)) state_.follow = !state_.follow;
  if (ImGui::IsKeyPressed(ImGuiKey_Tab, false)) step_panel(io.KeyShift ? -1 : 1);
  for (const ImWchar c : io.InputQueueCharacters)
    if (c == '?') help_ = !help_;
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) help_ = false;
  if (ImGui::IsKeyPressed(ImGuiKey_Home, false)) state_.steps.show_all();
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
                                     {"Alt+Left, Alt+Right", "back, forward"},
                                     {"F", "follow the run, or not"},
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
