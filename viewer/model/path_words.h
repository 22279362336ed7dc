/// Paths as people and shells read them. These functions read the file system.
#pragma once

#include <string>

namespace nanquest::viewer {

/// The command that replays a snapshot, quoted for a shell; works from any folder. `task`: its sub-command.
std::string command_to_replay(const std::string& snapshot, const std::string& task = "");
/// "story" for "runs/story", "runs/story/" and for "." inside it.
std::string last_name(const std::string& path);
/// A path as typed or pasted: without surrounding white space and quotes and without "file://", with the home
/// folder for "~".
std::string path_as_typed(const std::string& text);

}  // namespace nanquest::viewer
