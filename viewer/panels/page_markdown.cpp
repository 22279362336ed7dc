#include <fmt/format.h>

#include <string_view>

#include "viewer/panels/page_text.h"

namespace nanquest::viewer {
std::string markdown_plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\r') continue;  // would end a table's row
    if (c == '\n') {
      out += "<br>";
      continue;
    }
    if (c == '<' || c == '>' || c == '&') {
      out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
      continue;
    }
    if (std::string_view("\\`*_[]#|~").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

namespace {

void put_markdown_table(std::string& out, const PageTable& table) {
  if (!table.title.empty()) out += "### " + markdown_plain(table.title) + "\n\n";
  if (table.rows.empty()) return;
  std::string rule;
  for (const TextColumn& column : table.columns) {
    out += "| " + markdown_plain(column.title) + " ";
    rule += column.right ? "|---:" : "|---";
  }
  out += "|\n" + rule + "|\n";
  for (const PageTable::Row& row : table.rows) {
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      out += "| " + (c < row.cells.size() ? markdown_plain(row.cells[c]) : "") + " ";
    out += "|\n";
  }
  out += "\n";
}

}  // namespace

std::string page_markdown(const std::string& title, const PanelPage& page) {
  std::string out = "## " + markdown_plain(title) + "\n\n" + markdown_plain(page.headline) + "\n\n";
  if (page.cause)
    out +=
        fmt::format("**{}**: {}\n\n", markdown_plain(std::string(word(*page.cause))), meaning(*page.cause));
  for (const Fact& fact : page.facts)
    out += fact.label.empty()
               ? "- " + markdown_plain(fact.text) + "\n"
               : "- **" + markdown_plain(fact.label) + "**: " + markdown_plain(fact.text) + "\n";
  if (!page.facts.empty()) out += "\n";
  for (const PageTable& table : page.tables) put_markdown_table(out, table);
  return out;
}

}  // namespace nanquest::viewer
