#include "replay/html/html.h"

#include "replay/html/style.h"

namespace nanquest::html {

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
