/// What a window remembers of a person's choices beside its layout, in the same file.
#pragma once

namespace nanquest::viewer {

/// Adds theme and size to what Dear ImGui keeps in its settings file, and takes them from there. Call once,
/// before the file is read (the first frame, or ImGui::LoadIniSettingsFromDisk).
void remember_choices();

}  // namespace nanquest::viewer
