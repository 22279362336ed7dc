#include "viewer/panels/reading.h"

#include "imgui.h"

namespace nanquest::viewer {

void draw_reading(UiState& state, bool wide) {
  const std::string doing = state.doing();
  if (doing.empty()) return;
  const float em = ImGui::GetFontSize();
  ImGui::TextUnformatted(doing.c_str());
  if (!wide) ImGui::SameLine(0, em * 0.7f);
  if (ImGui::SmallButton("Stop")) state.loader->cancel();
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("What is shown stays (Esc)");
}

void draw_nothing(UiState& state) {
  if (!state.doing().empty()) return draw_reading(state, true);
  const Session& session = state.session;
  ImGui::TextWrapped("%s", session.nothing_because().empty()
                               ? ("Nothing was read of " + session.path() + "; Ctrl+R reads it").c_str()
                               : session.nothing_because().c_str());
}

}  // namespace nanquest::viewer
