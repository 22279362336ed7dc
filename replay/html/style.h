/// What an HTML file contains besides its text. Private to replay/html.
#pragma once

namespace nanquest::html {

/// Style sheet: dark or light like the reader's system, readable on paper; every meaning of a colour has a
/// shape or a word as well.
extern const char* const kStyle;
/// Script: a click on a column's title sorts its table, numbers by value, and again the other way; a field
/// above a long table hides the rows without the words in it.
extern const char* const kScript;

}  // namespace nanquest::html
