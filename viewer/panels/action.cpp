#include "viewer/panels/action.h"

#include <utility>

#include "imgui_internal.h"

namespace nanquest::viewer {

std::string keys_of(const Action& action) {
  std::string keys = action.chord == 0 ? "" : ImGui::GetKeyChordName(action.chord);
  for (const auto& [from, to] : {std::pair{"LeftArrow", "Left"},
                                 {"RightArrow", "Right"},
                                 {"LeftBracket", "["},
                                 {"RightBracket", "]"},
                                 {"Equal", "Plus"}})
    if (const std::size_t at = keys.find(from); at != std::string::npos)
      keys.replace(at, std::string(from).size(), to);
  if (action.typed != 0) keys = std::string(1, action.typed) + (keys.empty() ? "" : ", " + keys);
  return keys;
}

bool was_pressed(const Action& action) {
  if (action.typed != 0) {
    const ImVector<ImWchar>& typed = ImGui::GetIO().InputQueueCharacters;
    if (!ImGui::GetIO().WantTextInput && typed.contains(static_cast<ImWchar>(action.typed))) return true;
  }
  if (action.chord == 0) return false;
  const bool whole = (action.chord & (ImGuiMod_Ctrl | ImGuiMod_Alt)) != 0;
  if (!whole && ImGui::GetIO().WantTextInput) return false;
  const ImGuiInputFlags flags = action.repeats ? ImGuiInputFlags_Repeat : ImGuiInputFlags_None;
  bool pressed = ImGui::IsKeyChordPressed(action.chord, flags);
  for (const ImGuiKeyChord chord : action.also) pressed = pressed || ImGui::IsKeyChordPressed(chord, flags);
  return pressed;
}

}  // namespace nanquest::viewer
