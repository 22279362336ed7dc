/// The verdict panel while it is drawn. Private to viewer/panels/verdict.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "viewer/model/links.h"
#include "viewer/model/verdict_page.h"
#include "viewer/panels/view.h"

namespace nanquest::viewer {

/// What the panel shows; made once, drawn in many frames.
struct Shown {
  VerdictPage page;
  std::vector<PageTable> tables;
  std::unordered_map<std::string, std::vector<Span>> spans;  ///< texts as they were first drawn, cut at links
};

/// The panel in one frame: the page, and the targets of its links.
struct Drawn {
  UiState& state;
  Shown& shown;
  const Names& names;

  /// Draws a text with its links; a click follows them. `whole`: the target of a text without links.
  void text(const std::string& text, const std::optional<Link>& whole = {});
};

/// The mark of a sign, before its text.
void draw_sign(Sign sign);
/// The tables, in two columns of about equal height if there is room.
void draw_tables(Drawn& drawn);

}  // namespace nanquest::viewer
