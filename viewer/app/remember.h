/// What a window remembers of a person's choices beside its layout, in the same file.
#pragma once

#include <string>

namespace nanquest::viewer {

/// Adds theme, size and layout to what Dear ImGui keeps in its settings file, and takes them from there. Call
/// once, before the file is read (the first frame, or ImGui::LoadIniSettingsFromDisk). `layout`: the name of
/// the one that the panels were arranged by last; outlives the context of Dear ImGui.
void remember_choices(std::string& layout);

}  // namespace nanquest::viewer
