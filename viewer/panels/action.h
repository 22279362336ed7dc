/// Action: something that a user can do, defined once for menus, keys, the list of actions and the list of
/// keys.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "imgui.h"

namespace nanquest::viewer {

struct Action {
  std::string menu;  ///< "View", "Go", …: where it stands
  std::string name;  ///< "Show all steps"; no two are the same
  ImGuiKeyChord chord = 0;
  std::function<void()> run;
  bool repeats = false;                  ///< while its key is held
  char typed = 0;                        ///< instead of keys: a character, wherever the keyboard has it
  std::vector<ImGuiKeyChord> also = {};  ///< the same on other keys, as those of the number pad
};

/// "Ctrl+R"; "" for none.
std::string keys_of(const Action& action);
/// True if its keys were pressed in this frame; while text is typed, only those with Ctrl or Alt.
bool was_pressed(const Action& action);

}  // namespace nanquest::viewer
