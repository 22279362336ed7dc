/// Lines of a panel's text. Private to viewer/panels.
#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

namespace nanquest::viewer {

/// Appends formatted text.
template <class... Values>
void put(std::string& out, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Values>(values)...);
}

/// Appends a labelled paragraph, wrapped at 100 characters; line breaks of the text are kept. Nothing if it
/// is empty.
void paragraph(std::string& out, std::string label, const std::string& text);

}  // namespace nanquest::viewer
