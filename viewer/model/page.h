/// Pages: the content of a panel, as facts and tables. Texts, reports and drawings are made from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/verdict/words.h"
#include "viewer/model/link.h"
#include "viewer/model/text_table.h"

namespace nanquest::viewer {

/// The meaning of a mark beside a line. `verified` only marks a fix that was tried, whose placebo failed and
/// that nothing smaller replaces.
enum class Sign : std::uint8_t { none, verified, finite, non_finite, failed, caution };

/// One question and its answer.
struct Fact {
  std::string label;  ///< "What", "Where", "Why", "Fix", "Advice", "Blame", "Confidence", "Proven by", …
  std::string text;
  Sign sign = Sign::none;
  bool confidence = false;  ///< drawn with a bar before it
};

/// The tables below the facts: rows of words, with an optional mark at the start of a row.
struct PageTable {
  enum class Kind : std::uint8_t { plain, evidence, series, source, rehearsed };
  struct Row {
    std::vector<std::string> cells;
    Sign sign = Sign::none;
    std::optional<Link> place = {};  ///< what the row is about, so that others can lead to it
    std::size_t link_cell = 0;       ///< the cell that names `place`
    std::int64_t id = -1;            ///< the number of the row's subject: the rank; -1 if there is none
    bool here = false;               ///< for lines of a program: the selected one
  };
  /// Rows of the evidence were measured on the culprit; those of `series` and `rehearsed` can be drawn as
  /// lines; those of `source` are lines of a program, whose white space is kept.
  Kind kind = Kind::plain;
  std::string title;
  std::vector<TextColumn> columns;
  std::vector<Row> rows;
};

/// A whole panel in words.
struct PanelPage {
  std::string headline;        ///< one line
  std::optional<Label> cause;  ///< of the verdict
  std::vector<Fact> facts;
  std::vector<PageTable> tables;
};

}  // namespace nanquest::viewer
