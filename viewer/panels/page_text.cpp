#include "viewer/panels/page_text.h"

#include <algorithm>

#include "replay/verdict/words.h"
#include "viewer/panels/lines.h"

namespace nanquest::viewer {
namespace {

void put_plain_table(std::string& out, const PageTable& table) {
  std::vector<std::vector<std::string>> rows;
  for (const PageTable::Row& row : table.rows) rows.push_back(row.cells);
  if (!table.title.empty()) out += (out.empty() ? "" : "\n") + table.title + '\n';
  const std::string indent = table.title.empty() ? "" : "  ";
  if (table.columns.size() > 1)
    out += text_table(table.columns, rows, indent);
  else
    for (const std::vector<std::string>& row : rows) put(out, "{}{}\n", indent, row.front());
}

}  // namespace

std::string page_text(const PanelPage& page) {
  std::string out = page.headline + "\n";
  if (page.cause) put(out, "{}: {}\n", word(*page.cause), meaning(*page.cause));
  if (page.cause && !page.facts.empty()) out += '\n';
  const bool labelled =
      std::any_of(page.facts.begin(), page.facts.end(), [](const Fact& fact) { return !fact.label.empty(); });
  for (const Fact& fact : page.facts)
    labelled ? paragraph(out, fact.label, fact.text) : put(out, "  {}\n", fact.text);
  for (const PageTable& table : page.tables) put_plain_table(out, table);
  return out;
}

}  // namespace nanquest::viewer
