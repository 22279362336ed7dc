/// html: the frame of HTML files that need no other file, and their tables: style sheet, and the script that
/// sorts and searches tables.
///
///     write_file_atomically("out.html", html::document("A and B", "", "<section>…</section>"));
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nanquest::html {

/// Text as it stands between tags and in attributes.
std::string escaped(std::string_view text);

/// A cell of a table, or the title of a column.
struct Cell {
  std::string html;
  std::string classes = {};  ///< of the style sheet, separated by blanks: "right bad"
};

/// Adds the beginning of a table to `out`, with the titles of its columns; `add_row` and `end_table` follow.
void begin_table(std::string& out, std::span<const Cell> titles);
/// One row. `id` is text: where links to the row lead; "" if none does.
void add_row(std::string& out, std::span<const Cell> cells, std::string_view id = "");
void end_table(std::string& out);

/// A whole file. `title` is text; `links` and `body` are HTML, `links` stays visible above the body.
std::string document(std::string_view title, std::string_view links, std::string_view body);

}  // namespace nanquest::html
