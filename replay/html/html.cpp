#include "replay/html/html.h"

#include "replay/html/style.h"

namespace nanquest::html {
namespace {

void add_cells(std::string& out, std::string_view tag, std::span<const Cell> cells) {
  for (const Cell& cell : cells) {
    out.append("<").append(tag);
    if (!cell.classes.empty()) out.append(" class=\"").append(cell.classes).append("\"");
    out.append(">").append(cell.html).append("</").append(tag).append(">");
  }
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

void begin_table(std::string& out, std::span<const Cell> titles) {
  out += "<div class=\"scroll\"><table><thead><tr>";
  add_cells(out, "th", titles);
  out += "</tr></thead><tbody>\n";
}

void add_row(std::string& out, std::span<const Cell> cells, std::string_view id) {
  out += id.empty() ? "<tr>" : "<tr id=\"" + escaped(id) + "\">";
  add_cells(out, "td", cells);
  out += "</tr>\n";
}

void end_table(std::string& out) {
  out += "</tbody></table></div>\n";
}

std::string document(std::string_view title, std::string_view links, std::string_view body) {
  const std::string name = escaped(title);
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">";
  out.append("<title>").append(name).append(", nanquest</title>\n<style>").append(kStyle);
  out.append("</style></head><body>\n<nav>").append(links).append("</nav>\n<h1>").append(name);
  out.append("</h1>\n").append(body).append("<script>").append(kScript).append("</script>\n</body></html>\n");
  return out;
}

}  // namespace nanquest::html
