/// Pages: what a panel says, as facts and tables. Texts, reports and drawings are made of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replay/verdict/words.h"
#include "viewer/model/link.h"
#include "viewer/model/text_table.h"

namespace nanquest::viewer {

/// What a mark beside a line says. `verified` stands on a fix that was tried, whose placebo failed and that
/// nothing smaller replaces; on nothing else.
enum class Sign : std::uint8_t { none, verified, finite, non_finite, failed, caution };

/// One question and its answer.
struct Fact {
  std::string label;  ///< "What", "Where", "Why", "Fix", "Advice", "Blame", "Confidence", "Proven by", …
  std::string text;
  Sign sign = Sign::none;
  bool confidence = false;  ///< a bar stands before it
};

/// What stands below the facts: rows of words, and a mark at the head of a row.
struct PageTable {
  enum class Kind : std::uint8_t { plain, evidence, series, source, rehearsed };
  struct Row {
    std::vector<std::string> cells;
    Sign sign = Sign::none;
    std::optional<Link> place = {};  ///< what the row is about, so that others can lead to it
    std::size_t link_cell = 0;       ///< the cell that names `place`
    std::int64_t id = -1;            ///< what it is a row of, by number: the rank; -1 where that is nothing
    bool here = false;               ///< of lines of a program: the one that is looked at
  };
  /// Rows of the evidence were measured on the culprit; those of `series` and
  /// `rehearsed` can be drawn as lines; those of
  /// `source` are lines of a program, whose white space counts.
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
