#include "viewer/model/path_words.h"

#include <filesystem>
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

std::string command_to_replay(const std::string& snapshot) {
  std::error_code ec;
  const fs::path whole = fs::weakly_canonical(snapshot, ec);
  return "nanquest-replay " + shell_quoted(ec ? snapshot : whole.string());
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

}  // namespace nanquest::viewer
