/// What is kept of a person's choices, in a folder of their own: never in a run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest::viewer {

/// $XDG_CONFIG_HOME/nanquest, else ~/.config/nanquest, made if need be; "" if there is no place for it.
std::string settings_folder();

/// A place of the user's own for files of one kind: $`variable`/nanquest, else ~/`otherwise`/nanquest; "" if
/// neither is known. Makes nothing.
std::string own_folder(const char* variable, const char* otherwise);

/// A run or snapshot that was opened before.
struct RecentRun {
  std::string path;   ///< absolute
  bool there = true;  ///< false: it was moved or removed since
};
inline constexpr std::size_t kMostRecent = 20;

/// The last ones that were opened, newest first; none if nothing is kept. Asks the file system of each.
std::vector<RecentRun> recent_runs(const std::string& folder);
/// Puts a run or snapshot at the head of them; what is older than kMostRecent goes. `folder`: that of the
/// settings; nothing is kept for "". `io` if it can't be written.
Status note_recent(const std::string& folder, const std::string& path);

}  // namespace nanquest::viewer
