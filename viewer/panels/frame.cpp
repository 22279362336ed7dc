#include "viewer/panels/frame.h"

#include <algorithm>
#include <utility>

#include "imgui.h"
#include "imgui_internal.h"
#include "viewer/panels/layout.h"
#include "viewer/panels/reading.h"
#include "viewer/panels/strip.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
#define PANEL(name, title, place, needs) std::unique_ptr<PanelView> name##_view();
#include "viewer/panels/list.inc"
#undef PANEL

namespace {

constexpr const char* kDockSpace = "nanquest layout";

}  // namespace

Ui::Ui(Session& session, UiOptions options, Loader* loader) : state_(session, std::move(options), loader) {
  state_.on_other_run = [this] { begin_anew(); };
  state_.left = [this] { return desk(); };
  kept_.first = shown_incident(session);
#define PANEL(name, title, place, needs) views_.push_back(name##_view());
#include "viewer/panels/list.inc"
#undef PANEL
  if (state_.options.panel != Panel::all) focused_ = state_.options.panel;
  if (state_.options.layout != nullptr) show_layout(*state_.options.layout);
}

void Ui::draw() {
  (void)collect();
  if (const auto arrival = std::exchange(state_.arrived, std::nullopt)) resume(*arrival);
  const bool busy = state_.loader != nullptr && state_.loader->busy();
  if (state_.unkept && !busy) {
    state_.unkept = false;
    state_.keep_desk();
  }
  const std::vector<Action> all = actions();
  if (state_.options.panel == Panel::all) {
    draw_menu(all);
    draw_strip(state_, strip());
  }
  if (!state_.options.still)
    for (const Action& action : all)
      if (was_pressed(action)) run(action);
  draw_panels();
  draw_finders(all);
  open_.draw(state_);
  compare_.draw(state_);
  notes_.draw(state_);
  pictures_.draw(state_);
  if (help_) draw_help(all);
  for (const auto& act : std::exchange(state_.later, {})) act();
  if (state_.doing().empty()) trail_.visit(state_.session.selection(), focused_);
}

/// Before anything is drawn of what will be replaced.
bool Ui::collect() {
  const bool replayed = look_at_replay();
  if (state_.loader == nullptr || !state_.loader->has_news()) return replayed;
  const bool news = state_.loader->collect(state_.session);
  const std::string& trouble = state_.loader->trouble();
  if (!trouble.empty()) state_.message = "Could not be read: " + trouble;
  return news || replayed || !trouble.empty();
}

const Strip& Ui::strip() {
  const Session& session = state_.session;
  if (strip_content_ != session.content()) strip_ = strip_of(session);
  strip_content_ = session.content();
  strip_.age = session.age_text();
  return strip_;
}

void Ui::draw_menu(const std::vector<Action>& actions) {
  if (!ImGui::BeginMainMenuBar()) return;
  for (std::size_t first = 0; first < actions.size();) {
    std::size_t last = first;
    while (last < actions.size() && actions[last].menu == actions[first].menu) ++last;
    if (ImGui::BeginMenu(actions[first].menu.c_str())) {
      for (std::size_t i = first; i < last; ++i)
        if (ImGui::MenuItem(actions[i].name.c_str(), keys_of(actions[i]).c_str())) run(actions[i]);
      ImGui::EndMenu();
    }
    first = last;
  }
  ImGui::TextDisabled("|");
  std::string title = state_.session.title();
  if (const OpenIncident* incident = state_.session.incident())
    title += ", step " + std::to_string(incident->doc.step) + ", rank " + std::to_string(incident->doc.rank);
  ImGui::TextUnformatted(title.c_str());
  const std::string& lost = state_.session.lost_of_any();
  const std::string hint = !lost.empty()             ? lost
                           : !state_.message.empty() ? state_.message
                           : state_.options.still    ? ""
                                                     : "Ctrl+P lists all actions";
  // What came of a replay may be long: it is cut where the title ends.
  ImGui::SameLine(0, ImGui::GetFontSize());
  const float end = ImGui::GetWindowWidth() - 2 * ImGui::GetStyle().WindowPadding.x;
  const float width = std::min(ImGui::CalcTextSize(hint.c_str()).x, end - ImGui::GetCursorPosX());
  ImGui::SetCursorPosX(end - width);
  ImGui::PushStyleColor(ImGuiCol_Text, lost.empty() ? colour().muted : colour().orange);
  clipped_text(hint, width + 0.5f);
  ImGui::PopStyleColor();
  ImGui::EndMainMenuBar();
}

void Ui::draw_panel(Panel panel) {
  if (state_.session.is_nothing())
    draw_nothing(state_);
  else
    view(panel).draw(state_);
}

/// A window without a frame that fills the viewport.
void Ui::draw_alone(const char* title, const std::function<void()>& draw) {
  const ImGuiViewport& viewport = *ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport.WorkPos);
  ImGui::SetNextWindowSize(viewport.WorkSize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(18, 14));
  constexpr ImGuiWindowFlags flags =
      ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings;
  if (ImGui::Begin(title, nullptr, flags)) draw();
  ImGui::End();
  ImGui::PopStyleVar(2);
}

void Ui::draw_panels() {
  const bool of_two = state_.session.diff() != nullptr;
  if (of_two || state_.session.folder() != nullptr) {
    focused_ = Panel::runs;
#ifdef IMGUI_HAS_DOCK
    // The panels of the next run stand where those of the last one did.
    if (layout_made_)
      ImGui::DockSpaceOverViewport(ImGui::GetID(kDockSpace), ImGui::GetMainViewport(),
                                   ImGuiDockNodeFlags_KeepAliveOnly);
#endif
    if (of_two) return draw_alone("Two steps compared", [this] { diff_.draw(state_); });
    return draw_alone("Runs of a folder", [this] { folder_.draw(state_); });
  }
  if (const Panel panel = state_.options.panel; panel != Panel::all)
    return draw_alone(info_of(panel).title, [&] { draw_panel(panel); });
  const ImGuiViewport& viewport = *ImGui::GetMainViewport();
#ifdef IMGUI_HAS_DOCK
  const ImGuiID space = ImGui::GetID(kDockSpace);
  const bool unknown = ImGui::DockBuilderGetNode(space) == nullptr;  // nothing was remembered
  if (!layout_made_ && (unknown || forget_layout_)) {
    build_layout(space, viewport.WorkSize, *layout_);
    // Windows that appear for the first time come to the front one after the other, whatever their node
    // remembers.
    if (front_.empty())
      for (const Tabs& tabs : tabs_of(*layout_)) front_.push_back(tabs.front);
  }
  ImGui::DockSpaceOverViewport(space, &viewport);
#endif
  const std::optional<Panel> wanted = std::exchange(state_.wanted, std::nullopt);
  for (const PanelInfo& entry : all_panels()) {
#ifndef IMGUI_HAS_DOCK
    place_panel(entry, *layout_, viewport.WorkPos, viewport.WorkSize, forget_layout_);
#endif
    if (wanted == entry.panel) ImGui::SetNextWindowFocus();
    if (ImGui::Begin(entry.title)) {
      if (ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows)) focused_ = entry.panel;
      draw_panel(entry.panel);
    }
    ImGui::End();
  }
#ifdef IMGUI_HAS_DOCK
  if (layout_made_)  // tabs are there from the second frame on
    for (const Panel panel : std::exchange(front_, {})) show_tab(panel);
#endif
  layout_made_ = true;
  forget_layout_ = false;
}

}  // namespace nanquest::viewer
