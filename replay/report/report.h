/// Reports: a Verdict as JSON (the contract), as text for a terminal, and as Markdown.
///
///     std::cout << to_text(verdict, {.colour = isatty(1)});
///     Status s = write_text_file("step-00000131.r0.json", to_json(verdict));
#pragma once

#include <string>

#include "probe/base/result.h"
#include "replay/report/verdict.h"

namespace nanquest {

/// The verdict file's content: format "nanquest.verdict", version 1, indented, ends with a newline.
/// Non-finite numbers in series become null.
std::string to_json(const Verdict& verdict);

/// Reads what `to_json` wrote; unknown fields are ignored. `bad_file` names what is missing or wrong.
Result<Verdict> verdict_from_json(const std::string& text);

struct TextStyle {
  bool colour = false;  ///< ANSI colours; the caller asks the terminal and NO_COLOR
  int width = 100;      ///< columns to wrap at
};

/// What, where, why, what to do, how sure, proven by what: readable in ten seconds.
std::string to_text(const Verdict& verdict, const TextStyle& style = {});

/// The same for an issue or a wiki page, with tables of evidence and counterfactuals.
std::string to_markdown(const Verdict& verdict);

/// "aten::mm in blocks.1.mlp (forward)": where the verdict points, in words.
std::string where_text(const Verdict& verdict);

/// Writes `text` to `path`: complete or not at all (temporary name beside it, fsync, rename).
Status write_text_file(const std::string& path, const std::string& text);

}  // namespace nanquest
