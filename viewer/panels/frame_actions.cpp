// What a person can do.
#include <filesystem>
#include <system_error>

#include "imgui.h"
#include "imgui_internal.h"
#include "viewer/model/kept.h"
#include "viewer/model/strip.h"
#include "viewer/panels/frame.h"
#include "viewer/panels/page_text.h"
#include "viewer/panels/run_legend.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {

std::vector<Action> Ui::actions() {
  std::vector<Action> out;
  add_file(out);
  add_view(out);
  add_go(out);
  add_replay(out);
  add_copy(out);
  for (const std::unique_ptr<PanelView>& panel : views_)
    for (Action& action : panel->actions(state_)) out.push_back(std::move(action));
  return out;
}

void Ui::add_file(std::vector<Action>& out) {
  out.push_back({"File", "Open a run", ImGuiMod_Ctrl | ImGuiKey_O, [this] { open_.open(); }});
  out.push_back(
      {"File", "Compare with another run", ImGuiMod_Ctrl | ImGuiKey_B, [this] { compare_.open(); }});
  out.push_back(
      {"File", "Notes", ImGuiMod_Ctrl | ImGuiKey_N, [this, panel = focused_] { notes_.open(panel); }});
  if (!state_.session.others().empty())
    out.push_back({"File", "End the comparison", 0, [this] { state_.compare(""); }});
  out.push_back({"File", "Save the panel as picture", ImGuiMod_Ctrl | ImGuiKey_S,
                 [this, panel = focused_] { pictures_.want(state_, panel); }});
  out.push_back({"File", "Save the panel as picture named", ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_S,
                 [this, panel = focused_] { pictures_.ask(panel); }});
}

/// True while a field is open in which a person types.
bool Ui::asks() const {
  return palette_.is_open() || search_.is_open() || open_.is_open() || compare_.is_open() ||
         notes_.is_open() || pictures_.is_open();
}

/// Sizes change only after everything in this frame was drawn.
void Ui::add_size(std::vector<Action>& out) {
  const auto add = [&](const char* name, ImGuiKey key, std::vector<ImGuiKeyChord> also, auto size) {
    out.push_back({"View", name, ImGuiMod_Ctrl | static_cast<ImGuiKeyChord>(key), [this, size] {
                     state_.later.push_back([this, size] {
                       set_size(size(current_size()));
                       ImGui::MarkIniSettingsDirty();
                       state_.message = "Size " + std::to_string(current_size()) + " %";
                     });
                   }});
    out.back().repeats = true;
    out.back().also = std::move(also);
  };
  add("Larger", ImGuiKey_Equal,
      {ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_Equal, ImGuiMod_Ctrl | ImGuiKey_KeypadAdd},
      [](int now) { return size_after(now, 1); });
  add("Smaller", ImGuiKey_Minus, {ImGuiMod_Ctrl | ImGuiKey_KeypadSubtract},
      [](int now) { return size_after(now, -1); });
  add("Normal size", ImGuiKey_0, {ImGuiMod_Ctrl | ImGuiKey_Keypad0}, [](int) { return 100; });
}

void Ui::add_view(std::vector<Action>& out) {
  const auto add = [&](const std::string& name, ImGuiKeyChord chord, std::function<void()> run) {
    out.push_back({"View", name, chord, std::move(run)});
  };
  add("All actions", ImGuiMod_Ctrl | ImGuiKey_P, [this] { palette_.open(); });
  add("Reload", ImGuiMod_Ctrl | ImGuiKey_R, [this] { reload(); });
  if (!state_.doing().empty() && !asks())
    add("Stop reading", ImGuiKey_Escape, [this] { state_.loader->cancel(); });
  add("Follow the run, or not", ImGuiKey_F, [this] { state_.follow = !state_.follow; });
  add("Show all steps and values", ImGuiKey_Home, [this] { state_.steps.show_all(); });
  int key = ImGuiKey_1;
  for (const LayoutInfo& layout : all_layouts())
    add("Layout " + std::string(layout.name), ImGuiMod_Alt | static_cast<ImGuiKeyChord>(key++),
        [this, &layout] {
          show_layout(layout);
          state_.message = "Layout " + std::string(layout.name) + ": " + layout.purpose;
        });
  for (const Theme theme : kThemes)
    if (theme != current_theme())
      add(std::string("Theme ") + theme_name(theme), 0, [theme] {
        set_theme(theme);
        ImGui::MarkIniSettingsDirty();
      });
  add_smoothing(state_, out);
  add_size(out);
  add("Keyboard", ImGuiKey_F1, [this] { help_ = !help_; });
  out.back().typed = '?';
  add("Quit", ImGuiMod_Ctrl | ImGuiKey_Q, [this] { quit_ = true; });
}

void Ui::add_go(std::vector<Action>& out) {
  const auto add = [&](const std::string& name, ImGuiKeyChord chord, std::function<void()> run,
                       bool repeats = false) {
    out.push_back({"Go", name, chord, std::move(run), repeats});
  };
  if (state_.session.folder() != nullptr)
    add("Search the runs", ImGuiMod_Ctrl | ImGuiKey_F, [this] { folder_.search(); });
  else
    add("Find", ImGuiMod_Ctrl | ImGuiKey_F, [this] { search_.open(); });
  if (const std::string above = folder_above(state_.session); !above.empty())
    add("Runs of the folder", ImGuiMod_Alt | ImGuiKey_UpArrow, [this, above] { state_.open(above); });
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
    add("Next incident", ImGuiKey_I, [this] { step_incident(1); });
    add("Previous incident", ImGuiMod_Shift | ImGuiKey_I, [this] { step_incident(-1); });
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

bool Ui::run_named(const std::string& name) {
  for (const Action& action : actions())
    if (action.name == name) return run(action), true;
  return false;
}

void Ui::picture_taken(const std::string& path, const Status& taken) {
  std::error_code ec;
  const std::filesystem::path whole = std::filesystem::absolute(path, ec);
  state_.message = taken ? "Saved " + (ec ? path : whole.string()) : taken.error().text();
}

/// A panel's text may need data that were not read yet, and the whole of a long trace takes a while.
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

}  // namespace nanquest::viewer
