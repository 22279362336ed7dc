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

/// The panel in one frame: the page, and what its words lead to.
struct Drawn {
  UiState& state;
  Shown& shown;
  const Names& names;

  /// Draws a text with its links; a click goes there. `whole`: where a text without any leads.
  void text(const std::string& text, const std::optional<Link>& whole = {});
};

/// The mark of a sign, before the text that it is said of.
void draw_sign(Sign sign);
/// The tables, in two columns where there is room for it: about as much in each.
void draw_tables(Drawn& drawn);

}  // namespace nanquest::viewer
