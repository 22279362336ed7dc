/// Messages of other libraries, cut to what fits in a log line.
#pragma once

#include <string>
#include <string_view>

namespace nanquest {

/// The first line of `text` (LibTorch's messages go on with a backtrace), at most 300 characters.
inline std::string one_line(std::string_view text) {
  const std::size_t end = text.find('\n');
  return std::string(text.substr(0, end < 300 ? end : 300));
}

/// Puts `more` behind `line`, with a semicolon between; nothing for an empty `more`.
inline void append(std::string& line, std::string_view more) {
  if (more.empty()) return;
  if (!line.empty()) line += "; ";
  line += more;
}

}  // namespace nanquest
