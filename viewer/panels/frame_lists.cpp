// The lists from which actions can be run: actions, searched places, keys.
#include "imgui.h"
#include "viewer/model/words.h"
#include "viewer/panels/frame.h"

namespace nanquest::viewer {

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
  // Keys that are no actions: they depend on where the keyboard or the mouse is.
  constexpr const char* others[][2] = {{"Up, Down", "in the trace: the op before, after of those listed"},
                                       {"Wheel, drag", "zoom, pan the steps of a plot"},
                                       {"Drag on the timeline", "measure a curve; with Shift: pan"},
                                       {"Ctrl+wheel, Ctrl+drag", "zoom, pan the values of a curve"},
                                       {"Right drag", "zoom into this box; along one axis: into that alone"},
                                       {"Click on a plane", "of a tensor: look at that element"},
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
