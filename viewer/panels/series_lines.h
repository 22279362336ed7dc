/// Series as lines of a text: first value, present value, range. Private to viewer/panels.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "viewer/model/history.h"
#include "viewer/model/page.h"

namespace nanquest::viewer {

struct SeriesLine {
  std::string name;
  const Pyramid* values = nullptr;  ///< as long as the history
  std::optional<Link> place = {};   ///< what the line is about
  std::size_t given_from = 0;       ///< rows before it hold nothing
};

/// A table with one line per series, their names below `title`.
PageTable series_table(const History& history, const std::string& title,
                       const std::vector<SeriesLine>& lines);

}  // namespace nanquest::viewer
