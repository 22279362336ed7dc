#include "viewer/panels/nothing.h"

#include "imgui.h"
#include "viewer/model/verdict_page.h"

namespace nanquest::viewer {

void draw_nothing(const Session& session) {
  const PanelPage page = nothing_page(session);
  ImGui::TextWrapped("%s", page.headline.c_str());
  if (page.facts.empty() || !ImGui::BeginTable("facts", 2, ImGuiTableFlags_SizingFixedFit)) return;
  ImGui::TableSetupColumn("label", ImGuiTableColumnFlags_WidthFixed, ImGui::GetFontSize() * 5.6f);
  ImGui::TableSetupColumn("text", ImGuiTableColumnFlags_WidthStretch);
  for (const Fact& fact : page.facts) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    ImGui::TextDisabled("%s", fact.label.c_str());
    ImGui::TableNextColumn();
    ImGui::TextWrapped("%s", fact.text.c_str());
  }
  ImGui::EndTable();
}

}  // namespace nanquest::viewer
