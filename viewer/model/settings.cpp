#include "viewer/model/settings.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "probe/snapshot/atomic_file.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

std::string file_of(const std::string& folder) {
  return (fs::path(folder) / "recent").string();
}

/// The file holds one path per line.
std::vector<std::string> kept_in(const std::string& folder) {
  std::vector<std::string> paths;
  const Result<std::string> text =
      folder.empty() ? std::string() : read_whole_file(file_of(folder), kMostBytes);
  if (!text) return paths;
  std::istringstream lines(*text);
  for (std::string line; paths.size() < kMostRecent && std::getline(lines, line);)
    if (!line.empty()) paths.push_back(line);
  return paths;
}

}  // namespace

std::string own_folder(const char* variable, const char* otherwise) {
  const char* chosen = std::getenv(variable);
  const char* home = std::getenv("HOME");
  const fs::path folder = chosen != nullptr && chosen[0] != '\0' ? fs::path(chosen)
                          : home != nullptr                      ? fs::path(home) / otherwise
                                                                 : fs::path();
  return folder.empty() ? "" : (folder / "nanquest").string();
}

std::string settings_folder() {
  const std::string folder = own_folder("XDG_CONFIG_HOME", ".config");
  if (folder.empty()) return "";
  std::error_code ec;
  fs::create_directories(folder, ec);
  return ec ? "" : folder;
}

std::vector<RecentRun> recent_runs(const std::string& folder) {
  std::vector<RecentRun> runs;
  std::error_code ec;
  for (const std::string& path : kept_in(folder)) runs.push_back({path, fs::exists(path, ec)});
  return runs;
}

Status note_recent(const std::string& folder, const std::string& path) {
  if (folder.empty() || path.find('\n') != std::string::npos) return {};
  std::error_code ec;
  fs::path whole = fs::absolute(path, ec).lexically_normal();
  if (ec) return {};
  if (!whole.has_filename()) whole = whole.parent_path();  // of "runs/story/"
  std::vector<std::string> paths = kept_in(folder);
  std::erase(paths, whole.string());
  paths.insert(paths.begin(), whole.string());
  std::string text;
  for (std::size_t i = 0; i < std::min(paths.size(), kMostRecent); ++i) text += paths[i] + "\n";
  return write_file_atomically(file_of(folder), text, Durable::soon);
}

}  // namespace nanquest::viewer
