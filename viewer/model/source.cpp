#include "viewer/model/source.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAround = 3;    // lines before and after
constexpr std::size_t kWidest = 200;  // characters of a line
constexpr std::uintmax_t kMost = 8 << 20;
constexpr std::string_view kEndings[] = {".py", ".pyx", ".c", ".cc",  ".cpp", ".cxx",
                                         ".cu", ".cuh", ".h", ".hpp", ".inl"};

/// "file:line function" cut into file and line; line 0 if there is none.
std::pair<std::string, std::size_t> place_of(const std::string& frame) {
  for (std::size_t colon = frame.find(':'); colon != std::string::npos; colon = frame.find(':', colon + 1)) {
    std::size_t line = 0;
    const char* const begin = frame.data() + colon + 1;
    const char* const end = frame.data() + frame.size();
    const auto [rest, error] = std::from_chars(begin, end, line);
    if (error == std::errc() && line > 0 && (rest == end || *rest == ' '))
      return {frame.substr(0, colon), line};
  }
  return {"", 0};
}

/// Control characters of an untrusted file are of no use to people.
std::string shown(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, kWidest))
    out += c == '\t' ? std::string(4, ' ') : std::string(1, static_cast<unsigned char>(c) < 32 ? ' ' : c);
  return text.size() > kWidest ? out + " …" : out;
}

}  // namespace

Source read_source(const std::string& frame, fs::file_time_type recorded) {
  Source out;
  std::tie(out.path, out.line) = place_of(frame);
  if (out.path.empty()) return out;
  const fs::path path(out.path);
  std::error_code ec;
  const bool program = std::ranges::find(kEndings, path.extension().string()) != std::end(kEndings);
  if (!program || !fs::is_regular_file(path, ec)) {
    out.why = out.path + (program ? " was not found on this machine"
                                  : " is not shown: its name is not that of a program's source");
    return out;
  }
  std::ifstream file(path);
  if (!file || fs::file_size(path, ec) > kMost || ec) {
    out.why = out.path + " can't be read here";
    return out;
  }
  out.first = out.line > kAround ? out.line - kAround : 1;
  std::string text;
  for (std::size_t number = 1; number <= out.line + kAround && std::getline(file, text); ++number)
    if (number >= out.first) out.lines.push_back(shown(text));
  if (out.first + out.lines.size() <= out.line) {
    out.lines.clear();
    out.why = out.path + " has fewer lines here: it is another version";
  } else if (fs::last_write_time(path, ec) > recorded && !ec) {
    out.why = out.path + " was changed after this step was recorded: its lines may have moved";
  }
  return out;
}

}  // namespace nanquest::viewer
