/// What an HTML report contains besides its text. Private to viewer/report.
#pragma once

namespace nanquest::viewer {

/// Style sheet: dark or light like the reader's system, readable on paper; every meaning of a colour has a
/// shape or a word as well.
extern const char* const kReportStyle;
/// Script: a click on a column's title sorts its table, numbers by value, and again the other way; a field
/// above a long table hides the rows without the words in it.
extern const char* const kReportScript;

}  // namespace nanquest::viewer
