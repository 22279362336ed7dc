/// Records of a panel's CSV. Private to viewer/panels.
#pragma once

#include <ostream>
#include <string>

namespace nanquest::viewer {

/// A field, quoted where RFC 4180 asks for it.
std::string csv_field(const std::string& text);
/// Line breaks as "; ": one record per line, for tools that read lines.
std::string one_line(std::string text);

/// Writes one record of these text fields.
template <class... Fields>
void record(std::ostream& out, const Fields&... fields) {
  const char* separator = "";
  ((out << separator << csv_field(fields), separator = ","), ...);
  out << '\n';
}

}  // namespace nanquest::viewer
