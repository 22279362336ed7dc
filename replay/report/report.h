/// Reports: a Verdict as text for a terminal, and as Markdown. (As JSON: replay/verdict/json.h.)
///
///     std::cout << to_text(verdict, {.colour = isatty(1), .full = false});
#pragma once

#include <string>

#include "replay/verdict/verdict.h"

namespace nanquest {

struct TextStyle {
  bool colour = false;  ///< ANSI colours; the caller asks the terminal and NO_COLOR
  int width = 100;      ///< columns to wrap at
  bool full = true;     ///< false: about ten lines, long texts cut
  /// How the file was changed before it was read; printed also without `full`. "" for an unchanged file.
  std::string file = {};
  std::string next = {};  ///< last line: what to type next; "" for none
};

/// What, where, why, what to do, what was tried, how certain; with `full` all evidence and trials as well.
std::string to_text(const Verdict& verdict, const TextStyle& style = {});

/// Three lines: what and where, why, what to do and whether it was tried.
std::string to_brief(const Verdict& verdict);

/// The same for an issue or a wiki page, with tables of evidence and counterfactuals.
std::string to_markdown(const Verdict& verdict);

/// "aten::mm in blocks.1.mlp (forward)": where the verdict points, in words.
std::string where_text(const Verdict& verdict);

}  // namespace nanquest
