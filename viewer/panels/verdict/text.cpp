#include "viewer/model/text_table.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/lines.h"

namespace nanquest::viewer {

std::string verdict_text(Session& session) {
  const VerdictPage page = verdict_page(session);
  std::string out = page.headline + "\n";
  if (page.cause) put(out, "{}: {}\n", word(*page.cause), meaning(*page.cause));
  if (!page.facts.empty()) out += '\n';
  for (const Fact& fact : page.facts) paragraph(out, fact.label, fact.text);
  if (!page.command.empty()) paragraph(out, "", "not replayed yet: run " + page.command);
  for (const PageTable& table : verdict_tables(page)) {
    std::vector<TextColumn> columns;
    for (const std::string& title : table.columns) columns.push_back({title});
    std::vector<std::vector<std::string>> rows;
    for (const PageTable::Row& row : table.rows) rows.push_back(row.cells);
    out += '\n' + table.title + '\n';
    if (columns.size() > 1)
      out += text_table(columns, rows, "  ");
    else
      for (const std::vector<std::string>& row : rows) put(out, "  {}\n", row.front());
  }
  return out;
}

}  // namespace nanquest::viewer
