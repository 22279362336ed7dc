/// Text cut into lines, for terminals and reports.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace nanquest {

/// The words of `text`, separated by any white space, in lines of at most `width` bytes; a line is longer
/// only if a single word is. Line breaks of the text are kept if `keep_breaks`. At least one line.
inline std::vector<std::string> wrapped(std::string_view text, std::size_t width, bool keep_breaks = false) {
  constexpr std::string_view space = " \t\r\n\v\f";
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t gap = std::min(text.find_first_not_of(space), text.size());
    for (std::size_t i = 0; i < gap; ++i)
      if (keep_breaks && text[i] == '\n' && gap < text.size()) lines.emplace_back();
    text.remove_prefix(gap);
    const std::string_view word = text.substr(0, text.find_first_of(space));
    text.remove_prefix(word.size());
    if (word.empty()) break;
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) lines.emplace_back();
    lines.back().append(lines.back().empty() ? "" : " ").append(word);
  }
  return lines;
}

}  // namespace nanquest
