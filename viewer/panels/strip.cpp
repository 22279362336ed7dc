#include "viewer/panels/strip.h"

#include "imgui.h"
#include "imgui_internal.h"
#include "viewer/panels/reading.h"
#include "viewer/ui/style.h"
#include "viewer/ui/widgets.h"

namespace nanquest::viewer {
namespace {

/// Puts what follows on the same line if there is room. False: there is none.
bool next(float width) {
  ImGui::SameLine(0, ImGui::GetFontSize() * 0.9f);
  ImGui::AlignTextToFramePadding();
  return ImGui::GetContentRegionAvail().x >= width;
}

void jump(UiState& state, const char* label, const std::optional<Link>& link) {
  if (!link || !next(ImGui::CalcTextSize(label).x + ImGui::GetFontSize())) return;
  if (ImGui::SmallButton(label)) state.go(*link);
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("op %lld", static_cast<long long>(link->number));
}

void facts(UiState& state, const Strip& strip) {
  for (std::size_t i = 0; i < strip.facts.size(); ++i) {
    const auto& [text, link] = strip.facts[i];
    if (!next(ImGui::CalcTextSize(text.c_str()).x)) return;
    ImGui::PushID(static_cast<int>(i));
    if (!link)
      ImGui::TextUnformatted(text.c_str());
    else if (ImGui::TextLink(text.c_str()))
      state.go(*link);
    ImGui::PopID();
  }
}

/// At the right end: whether the window follows the run, and how old its data are.
void following(UiState& state, const Strip& strip) {
  const std::string age = strip.age.empty() ? "" : "written " + strip.age + " ago";
  const float em = ImGui::GetFontSize(), button = ImGui::CalcTextSize("FOLLOW").x + em;
  const float width = button + (age.empty() ? 0 : ImGui::CalcTextSize(age.c_str()).x + em * 0.9f);
  if (!next(width)) return;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - width);
  if (!age.empty()) {
    ImGui::TextDisabled("%s", age.c_str());
    ImGui::SameLine(0, em * 0.9f);
  }
  if (lit_button("FOLLOW", state.follow && !strip.over, true)) state.follow = !state.follow;
  if (ImGui::IsItemHovered())
    ImGui::SetTooltip("%s", strip.over     ? "The run is over: nothing new comes"
                            : state.follow ? "What is new is read as it comes (F)"
                                           : "What is new is not read (F, Ctrl+R)");
}

}  // namespace

void draw_strip(UiState& state, const Strip& strip) {
  const float height = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().FramePadding.y + 4;
  ImGui::PushStyleColor(ImGuiCol_WindowBg, colour().raised);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ImGui::GetStyle().WindowPadding.x, 4});
  constexpr ImGuiWindowFlags flags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoSavedSettings |
                                     ImGuiWindowFlags_NoDocking | ImGuiWindowFlags_NoNavFocus;
  if (ImGui::BeginViewportSideBar("Strip", ImGui::GetMainViewport(), ImGuiDir_Up, height, flags)) {
    if (!state.doing().empty()) {
      ImGui::AlignTextToFramePadding();
      draw_reading(state, false);
      ImGui::SameLine(0, ImGui::GetFontSize() * 0.9f);
    }
    if (state.replaying.runs()) {
      ImGui::AlignTextToFramePadding();
      draw_replaying(state, false);
      ImGui::SameLine(0, ImGui::GetFontSize() * 0.9f);
    }
    if (strip.cause) {
      chip(strip.says.c_str(), cause_colour(*strip.cause));
    } else {
      ImGui::AlignTextToFramePadding();
      clipped_text(strip.says, ImGui::GetContentRegionAvail().x - ImGui::GetFontSize() * 6);
    }
    facts(state, strip);
    jump(state, "Where it began", strip.breaks.began);
    jump(state, "Where it broke", strip.breaks.broke);
    if (!state.options.still) following(state, strip);
  }
  ImGui::End();
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
}

}  // namespace nanquest::viewer
