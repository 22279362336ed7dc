/// Tables for terminals: columns as wide as they need to be, never glued together.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace nanquest::viewer {

struct TextColumn {
  std::string title;
  bool right = false;     ///< numbers are aligned right
  std::size_t most = 72;  ///< a wider cell pushes the rest of its own row instead of widening the column
};

/// Header line and rows, each with `indent`; at least two spaces between columns, none at a line's end.
/// Widths count characters, not bytes. A row may have fewer cells than there are columns.
std::string text_table(const std::vector<TextColumn>& columns,
                       const std::vector<std::vector<std::string>>& rows, const std::string& indent = "");

}  // namespace nanquest::viewer
