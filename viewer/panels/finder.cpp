#include "viewer/panels/finder.h"

#include <algorithm>

#include "imgui.h"
#include "viewer/ui/style.h"

namespace nanquest::viewer {

void Finder::open() {
  open_ = fresh_ = true;
  text_[0] = '\0';
  chosen_ = 0;
}

void Finder::draw(const std::vector<Entry>& entries) {
  if (!open_) return;
  const ImGuiViewport& viewport = *ImGui::GetMainViewport();
  const float em = ImGui::GetFontSize();
  const ImVec2 size{std::min(em * 42, viewport.WorkSize.x * 0.9f),
                    std::min(em * 26, viewport.WorkSize.y * 0.8f)};
  ImGui::SetNextWindowPos({viewport.WorkPos.x + (viewport.WorkSize.x - size.x) / 2, viewport.WorkPos.y + em});
  ImGui::SetNextWindowSize(size);
  if (fresh_) ImGui::SetNextWindowFocus();
  ImGui::PushStyleColor(ImGuiCol_WindowBg, colour().raised);
  constexpr ImGuiWindowFlags flags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                     ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                                     ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoNav;
  if (ImGui::Begin(title_, nullptr, flags)) {
    if (fresh_) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(-1);
    const std::string label = std::string("##") + title_;
    const bool enter = ImGui::InputTextWithHint(label.c_str(), invites_, text_, sizeof text_,
                                                ImGuiInputTextFlags_EnterReturnsTrue);
    if (ImGui::IsItemEdited()) chosen_ = 0;
    const bool elsewhere = !fresh_ && !ImGui::IsWindowFocused(ImGuiFocusedFlags_RootAndChildWindows);
    if (elsewhere || ImGui::IsKeyPressed(ImGuiKey_Escape, false)) open_ = false;
    draw_list(entries, enter);
  }
  ImGui::End();
  ImGui::PopStyleColor();
  fresh_ = false;
}

void Finder::draw_list(const std::vector<Entry>& entries, bool enter) {
  if (entries.empty()) return ImGui::TextDisabled("%s", none_);
  const int last = static_cast<int>(entries.size()) - 1;
  const bool down = ImGui::IsKeyPressed(ImGuiKey_DownArrow), up = ImGui::IsKeyPressed(ImGuiKey_UpArrow);
  chosen_ = std::clamp(chosen_ + (down ? 1 : 0) - (up ? 1 : 0), 0, last);
  const Entry* run = enter ? &entries[static_cast<std::size_t>(chosen_)] : nullptr;
  if (ImGui::BeginChild("found", {0, 0}, 0, ImGuiWindowFlags_NoNav)) {
    for (int i = 0; i <= last; ++i) {
      const Entry& entry = entries[static_cast<std::size_t>(i)];
      ImGui::PushID(i);
      if (ImGui::Selectable(entry.label.c_str(), i == chosen_)) run = &entry;
      if ((down || up) && i == chosen_) ImGui::SetScrollHereY();
      const float width = ImGui::CalcTextSize(entry.hint.c_str()).x;
      ImGui::SameLine(ImGui::GetContentRegionMax().x - width);
      ImGui::TextDisabled("%s", entry.hint.c_str());
      ImGui::PopID();
    }
  }
  ImGui::EndChild();
  if (run == nullptr) return;
  open_ = false;
  run->run();
}

}  // namespace nanquest::viewer
