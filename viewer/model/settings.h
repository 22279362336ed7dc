/// The user's choices, stored in a folder of their own: never in a run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "probe/base/result.h"

namespace nanquest::viewer {

/// $XDG_CONFIG_HOME/nanquest, otherwise ~/.config/nanquest, created if needed; "" if there is no place for
/// it.
std::string settings_folder();

/// The user's folder for files of one kind: $`variable`/nanquest, otherwise ~/`otherwise`/nanquest; "" if
/// neither is known. Creates nothing.
std::string own_folder(const char* variable, const char* otherwise);

/// A run or snapshot that was opened before.
struct RecentRun {
  std::string path;   ///< absolute
  bool there = true;  ///< false: it was moved or removed since
};
inline constexpr std::size_t kMostRecent = 20;

/// The last ones that were opened, newest first; none if nothing is stored. Checks each in the file system.
std::vector<RecentRun> recent_runs(const std::string& folder);
/// Puts a run or snapshot first; entries beyond kMostRecent are dropped. `folder`: that of the settings;
/// nothing is stored for "". `io` if it can't be written.
Status note_recent(const std::string& folder, const std::string& path);

}  // namespace nanquest::viewer
