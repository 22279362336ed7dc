#include <fmt/format.h>

#include <iterator>

#include "viewer/report/report.h"

namespace nanquest::viewer {
namespace {

/// Text that Markdown takes as it is; on one line, as cells and items are.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
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

void put_table(std::string& out, const PageTable& table) {
  if (!table.title.empty()) out += "### " + plain(table.title) + "\n\n";
  if (table.rows.empty()) return;
  std::string rule;
  for (const TextColumn& column : table.columns) {
    out += "| " + plain(column.title) + " ";
    rule += column.right ? "|---:" : "|---";
  }
  out += "|\n" + rule + "|\n";
  for (const PageTable::Row& row : table.rows) {
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      out += "| " + (c < row.cells.size() ? plain(row.cells[c]) : "") + " ";
    out += "|\n";
  }
  out += "\n";
}

}  // namespace

std::string page_markdown(const std::string& title, const PanelPage& page) {
  std::string out = "## " + plain(title) + "\n\n" + plain(page.headline) + "\n\n";
  if (page.cause)
    out += fmt::format("**{}**: {}\n\n", plain(std::string(word(*page.cause))), meaning(*page.cause));
  for (const Fact& fact : page.facts)
    out += fact.label.empty() ? "- " + plain(fact.text) + "\n"
                              : "- **" + plain(fact.label) + "**: " + plain(fact.text) + "\n";
  if (!page.facts.empty()) out += "\n";
  for (const PageTable& table : page.tables) put_table(out, table);
  return out;
}

std::string report_markdown(Session& session) {
  std::string out = "# " + plain(session.title()) + "\n\n";
  for (const PanelInfo& panel : all_panels())
    out += page_markdown(panel.title, panel.page(session, Extent::whole));
  return out;
}

}  // namespace nanquest::viewer
