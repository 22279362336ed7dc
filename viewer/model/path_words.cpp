#include "viewer/model/path_words.h"

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

/// Single quotes for a shell, only where they are needed.
std::string shell_quoted(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./-+=:,@%") == std::string::npos;
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string command_to_replay(const std::string& snapshot, const std::string& task) {
  std::error_code ec;
  const fs::path whole = fs::weakly_canonical(snapshot, ec);
  return "nanquest-replay " + (task.empty() ? "" : task + " ") + shell_quoted(ec ? snapshot : whole.string());
}

std::string last_name(const std::string& whole) {
  fs::path path(whole);
  if (path.filename().empty()) path = path.parent_path();
  if (path.filename() == "." || path.filename() == "..") {
    std::error_code ec;
    path = fs::canonical(path, ec);
  }
  return path.filename().string();
}

std::string path_as_typed(const std::string& text) {
  constexpr const char* space = " \t\r\n";
  constexpr std::string_view scheme = "file://";
  const std::size_t first = text.find_first_not_of(space);
  if (first == std::string::npos) return "";
  std::string path = text.substr(first, text.find_last_not_of(space) - first + 1);
  if (path.size() > 1 && path.front() == path.back() && (path.front() == '\'' || path.front() == '"'))
    path = path.substr(1, path.size() - 2);
  if (path.starts_with(scheme)) path.erase(0, scheme.size());
  const char* home = std::getenv("HOME");
  if (home != nullptr && (path == "~" || path.starts_with("~/"))) path.replace(0, 1, home);
  return path;
}

}  // namespace nanquest::viewer
