#include "replay/cause/source_patch.h"

#include <charconv>
#include <filesystem>
#include <fstream>

#include "probe/snapshot/frames.h"
#include "replay/cause/source_line.h"

namespace nanquest {
namespace {

namespace fs = std::filesystem;

/// A frame's file and line; line 0 if the frame names none.
struct Place {
  std::string file;
  std::size_t line = 0;
};

Place place_of(const std::string& frame) {
  const std::size_t space = frame.rfind(' ');
  const std::size_t colon = frame.rfind(':', space);
  Place place;
  if (colon == std::string::npos) return place;
  place.file = frame.substr(0, colon);
  const std::size_t end = space == std::string::npos || space < colon ? frame.size() : space;
  std::from_chars(frame.data() + colon + 1, frame.data() + end, place.line);
  return place;
}

std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// As `patch -p0` finds it from the working directory, if it lies below that.
std::string shown_path(const std::string& file) {
  std::error_code error;
  const fs::path relative = fs::relative(file, fs::current_path(error), error);
  return error || relative.empty() || *relative.begin() == ".." ? file : relative.string();
}

constexpr std::size_t kContext = 3;

std::string unified(const std::string& file, const std::vector<std::string>& lines, std::size_t line,
                    const std::string& after) {
  const std::size_t at = line - 1, first = at < kContext ? 0 : at - kContext;
  const std::size_t last = std::min(lines.size(), at + kContext + 1);
  const std::string range = std::to_string(first + 1) + "," + std::to_string(last - first);
  std::string text = "--- " + file + "\n+++ " + file + "\n@@ -" + range + " +" + range + " @@\n";
  for (std::size_t i = first; i < last; ++i) {
    text += (i == at ? "-" : " ") + lines[i] + "\n";
    if (i == at) text += "+" + after + "\n";
  }
  return text;
}

bool is_newer(const std::string& file, const std::string& snapshot) {
  std::error_code error;
  const auto changed = fs::last_write_time(file, error);
  const auto recorded = error ? changed : fs::last_write_time(snapshot, error);
  return error || changed > recorded;
}

bool ends_without_newline(const std::string& file) {
  std::ifstream in(file, std::ios::ate | std::ios::binary);
  if (!in || in.tellg() == 0) return true;
  in.seekg(-1, std::ios::end);
  return in.get() != '\n';
}

}  // namespace

SourcePatch source_patch(const SourceEdit& edit, const std::vector<std::string>& stack,
                         const std::string& snapshot) {
  const std::string frame = program_frame(stack);
  if (frame.empty() || is_library_frame(frame))
    return {"", "no line of the program itself is on record for it"};
  const Place place = place_of(frame);
  const std::string where = place.file + ":" + std::to_string(place.line);
  std::error_code error;
  if (place.line == 0) return {"", "no line of the program itself is on record for it"};
  if (!fs::is_regular_file(place.file, error)) return {"", place.file + " is not on this machine"};
  if (is_newer(place.file, snapshot))
    return {"", place.file + " was changed after the incident was recorded"};
  const std::vector<std::string> lines = lines_of(place.file);
  if (place.line > lines.size()) return {"", place.file + " has no line " + std::to_string(place.line)};
  const std::string& before = lines[place.line - 1];
  if (place.line + kContext >= lines.size() && ends_without_newline(place.file))
    return {"", place.file + " does not end with a newline"};
  const auto after = edited_line(before, edit);
  if (!after) return {"", where + " does not show " + edit.op + " as one call or operator on one line"};
  return {unified(shown_path(place.file), lines, place.line, *after), ""};
}

}  // namespace nanquest
