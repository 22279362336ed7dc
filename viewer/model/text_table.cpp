#include "viewer/model/text_table.h"

#include <algorithm>

namespace nanquest::viewer {
namespace {

/// Number of characters of UTF-8 text: bytes that are no continuation bytes.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; }));
}

}  // namespace

std::string text_table(const std::vector<TextColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows, const std::string& indent) {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    titles.push_back(columns[c].title);
    widths.push_back(width_of(columns[c].title));
    for (const auto& row : rows)
      if (c < row.size() && width_of(row[c]) <= columns[c].most)
        widths.back() = std::max(widths.back(), width_of(row[c]));
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text = indent;
    for (std::size_t c = 0; c < std::min(cells.size(), columns.size()); ++c) {
      const std::size_t width = width_of(cells[c]);
      const std::string gap(widths[c] > width ? widths[c] - width : 0, ' ');
      text += (c ? "  " : "") + (columns[c].right ? gap + cells[c] : cells[c] + gap);
    }
    text.resize(text.find_last_not_of(' ') + 1);
    out += text + '\n';
  };
  line(titles);
  for (const auto& row : rows) line(row);
  return out;
}

}  // namespace nanquest::viewer
