// What a person can do, and the lists that it can be done from.
#include "imgui.h"
#include "imgui_internal.h"
#include "viewer/model/strip.h"
#include "viewer/model/words.h"
#include "viewer/panels/frame.h"
#include "viewer/panels/page_text.h"
#include "viewer/ui/theme.h"

namespace nanquest::viewer {

std::vector<Action> Ui::actions() {
  std::vector<Action> out;
  add_view(out);
  add_go(out);
  add_copy(out);
  for (const std::unique_ptr<PanelView>& panel : views_)
    for (Action& action : panel->actions(state_)) out.push_back(std::move(action));
  return out;
}

void Ui::add_view(std::vector<Action>& out) {
  const auto add = [&](const std::string& name, ImGuiKeyChord chord, std::function<void()> run) {
    out.push_back({"View", name, chord, std::move(run)});
  };
  add("All actions", ImGuiMod_Ctrl | ImGuiKey_P, [this] { palette_.open(); });
  add("Reload", ImGuiMod_Ctrl | ImGuiKey_R, [this] { reload(); });
  if (!state_.doing().empty() && !palette_.is_open() && !search_.is_open())
    add("Stop reading", ImGuiKey_Escape, [this] { state_.loader->cancel(); });
  add("Follow the run, or not", ImGuiKey_F, [this] { state_.follow = !state_.follow; });
  add("Show all steps and values", ImGuiKey_Home, [this] { state_.steps.show_all(); });
  add("Default layout", 0, [this] { reset_layout(); });
  for (const Theme theme : kThemes)
    if (theme != current_theme())
      add(std::string("Theme ") + theme_name(theme), 0, [theme] {
        set_theme(theme);
        ImGui::MarkIniSettingsDirty();
      });
  add("Keyboard", 0, [this] { help_ = !help_; });
  out.back().typed = '?';
  add("Quit", ImGuiMod_Ctrl | ImGuiKey_Q, [this] { quit_ = true; });
}

void Ui::add_go(std::vector<Action>& out) {
  const auto add = [&](const std::string& name, ImGuiKeyChord chord, std::function<void()> run,
                       bool repeats = false) {
    out.push_back({"Go", name, chord, std::move(run), repeats});
  };
  add("Find", ImGuiMod_Ctrl | ImGuiKey_F, [this] { search_.open(); });
  if (trail_.can_go_back()) add("Back", ImGuiMod_Alt | ImGuiKey_LeftArrow, [this] { go_to(trail_.back()); });
  if (trail_.can_go_forward())
    add("Forward", ImGuiMod_Alt | ImGuiKey_RightArrow, [this] { go_to(trail_.forward()); });
  const auto [began, broke] = breaks_of(state_.session);
  if (broke) add("Where it broke", ImGuiKey_C, [this, link = *broke] { state_.go(link); });
  if (began) add("Where it began", ImGuiKey_B, [this, link = *began] { state_.go(link); });
  Session& session = state_.session;
  if (const OpenIncident* incident = session.incident(); incident && session.selection().op != kNone) {
    const OpId op{session.selection().op};
    const auto walk = [&](const char* name, ImGuiKey key, OpId to) {
      if (to)
        add(
            name, key, [&session, to] { session.select_op(to.row()); }, true);
    };
    walk("To the op that made it", ImGuiKey_LeftBracket, incident->trace.walk_back(op));
    walk("To an op that reads it", ImGuiKey_RightBracket, incident->trace.walk_forward(op));
  }
  if (session.incidents().size() > 1) {
    add("Next incident", ImGuiKey_N, [this] { step_incident(1); });
    add("Previous incident", ImGuiMod_Shift | ImGuiKey_N, [this] { step_incident(-1); });
  }
  add("Next panel", ImGuiKey_Tab, [this] { step_panel(1); });
  add("Previous panel", ImGuiMod_Shift | ImGuiKey_Tab, [this] { step_panel(-1); });
  for (const PanelInfo& panel : all_panels())
    add(std::string("Go to ") + panel.title,
        ImGuiMod_Ctrl | static_cast<ImGuiKeyChord>(ImGuiKey_1 + static_cast<int>(panel.panel)),
        [this, which = panel.panel] { state_.wanted = which; });
}

void Ui::add_copy(std::vector<Action>& out) {
  const PanelInfo& info = info_of(focused_);
  using Text = std::function<Result<std::string>(Session&)>;
  const auto add = [&](const char* as, ImGuiKeyChord chord, Text text) {
    out.push_back({"Copy", std::string("Copy ") + info.title + " as " + as, chord,
                   [this, as, text = std::move(text)] { copy(as, text); }});
  };
  const PanelInfo* panel = &info;  // actions outlive this call; the list of panels outlives them
  add("text", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_C,
      [=](Session& session) { return panel_text(session, panel->panel); });
  add("CSV", 0, [=](Session& session) { return panel_csv(session, panel->panel); });
  add("Markdown", 0,
      [=](Session& session) { return page_markdown(panel->title, panel->page(session, Extent::whole)); });
}

void Ui::run(const Action& action) {
  last_action_ = action.name;
  action.run();
}

/// A panel's text may need what nobody has read yet, and the whole of a long trace takes a while.
void Ui::copy(const char* what, std::function<Result<std::string>(Session&)> text) {
  const auto made = std::make_shared<Result<std::string>>(std::string());
  const auto make = [made, text = std::move(text)](Session& session) {
    *made = text(session);
    return true;
  };
  state_.read({"it to be copied", make, [this, what, made] {
                 if (*made) ImGui::SetClipboardText((*made)->c_str());
                 state_.message = *made ? std::string("Copied as ") + what : made->error().text();
               }});
}

void Ui::reload() {
  if (state_.session.is_nothing()) return state_.open(state_.session.path());
  const auto status = std::make_shared<Status>();
  const auto again = [status](Session& session) {
    *status = session.reload();
    return true;
  };
  state_.read({"it again", again,
               [this, status] { state_.message = *status ? "Reloaded" : status->error().text(); }});
}

void Ui::step_panel(int by) {
  const int count = static_cast<int>(views_.size());
  state_.wanted = static_cast<Panel>((static_cast<int>(focused_) + by + count) % count);
}

void Ui::step_incident(int by) {
  const int count = static_cast<int>(state_.session.incidents().size());
  state_.select_incident((state_.session.selection().incident + by + count) % count);
}

void Ui::go_to(const Trail::Place* place) {
  if (place == nullptr) return;
  state_.restore(place->selection);
  state_.wanted = place->panel;
}

void Ui::draw_finders(const std::vector<Action>& actions) {
  if (palette_.is_open()) {
    std::vector<Finder::Entry> entries;
    const Words words(palette_.text());
    for (const Action& action : actions)
      if (words.in(action.menu + ' ' + action.name))
        entries.push_back({action.name, keys_of(action), [this, &action] { run(action); }});
    palette_.draw(entries);
  }
  if (search_.is_open()) {
    const std::string key = std::to_string(state_.session.content()) + '\n' + search_.text();
    if (key != hits_of_) hits_ = search(state_.session, search_.text());
    hits_of_ = key;
    std::vector<Finder::Entry> entries;
    for (const Hit& hit : hits_)
      entries.push_back({hit.label, kind_name(hit.link.kind), [this, link = hit.link] { state_.go(link); }});
    search_.draw(entries);
  }
}

void Ui::draw_help(const std::vector<Action>& actions) {
  // What is no action: it depends on where the keyboard or the mouse is.
  constexpr const char* others[][2] = {{"Up, Down", "in the trace: the op before, after of those listed"},
                                       {"Wheel, drag", "zoom, pan the steps of a plot"},
                                       {"Drag on the timeline", "measure a curve; with Shift: pan"},
                                       {"Ctrl+wheel, Ctrl+drag", "zoom, pan the values of a curve"},
                                       {"Right drag", "zoom into these steps, with Ctrl these values"},
                                       {"Double click", "show all steps and values"}};
  const auto row = [](const char* keys, const char* what) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextUnformatted(keys);
    ImGui::TableNextColumn();
    ImGui::TextDisabled("%s", what);
  };
  ImGui::SetNextWindowPos(ImGui::GetMainViewport()->GetCenter(), ImGuiCond_Appearing, {0.5f, 0.5f});
  if (ImGui::Begin("Keyboard", &help_,
                   ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoDocking |
                       ImGuiWindowFlags_NoSavedSettings) &&
      ImGui::BeginTable("keys", 2)) {
    for (const Action& action : actions)
      if (const std::string keys = keys_of(action); !keys.empty()) row(keys.c_str(), action.name.c_str());
    for (const auto& line : others) row(line[0], line[1]);
    ImGui::EndTable();
  }
  ImGui::End();
  if (ImGui::IsKeyPressed(ImGuiKey_Escape, false)) help_ = false;
}

}  // namespace nanquest::viewer
