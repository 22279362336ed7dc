/// The user's choices that a window stores besides its layout, in the same file.
#pragma once

#include <string>

namespace nanquest::viewer {

/// Stores theme, size and layout in Dear ImGui's settings file, and reads them from there. Call once, before
/// the file is read (the first frame, or ImGui::LoadIniSettingsFromDisk). `layout`: the name of the layout
/// used last; must outlive the context of Dear ImGui.
void remember_choices(std::string& layout);

}  // namespace nanquest::viewer
