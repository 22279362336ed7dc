/// viewer/panels: the views of a run. Each has a folder with its page, its CSV and its drawing; all of them
/// are listed in list.inc. Text and CSV need no Dear ImGui: they are for terminals, scripts and screen
/// readers.
///
///     for (const PanelInfo& panel : all_panels()) std::cout << panel_text(session, panel.panel);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "viewer/model/page.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

#define PANEL(name, title, place, needs) name,
enum class Panel : std::uint8_t {
#include "viewer/panels/list.inc"
  all
};
#undef PANEL

/// Its position in a layout (layouts.h); named after the default one.
enum class Place : std::uint8_t {
  left_top,
  left_bottom,
  side,
  right_top,
  right_middle,
  right_bottom,
  right_corner
};
inline constexpr std::size_t kLayoutPlaces = 7;

/// Without this it only shows why it is empty.
enum class Needs : std::uint8_t { nothing, verdict, snapshot };

/// How much of a panel's tables is shown: what fits a terminal, or as much as a file may hold.
enum class Extent : std::uint8_t { glance, whole };
/// Rows of a table that a file may hold; of larger tables those around the selection, and the page says so.
inline constexpr std::size_t kWholeRows = 2000;

struct PanelInfo {
  Panel panel;
  std::string_view name;  ///< on the command line
  const char* title;      ///< of its window
  Place place;
  Needs needs;
  /// The content of the panel, as facts and tables. The selection of the session decides which layer, op and
  /// tensor. Reads a tensor's data if the panel needs it; the page says so if it is unreadable.
  PanelPage (*page)(Session&, Extent);
  /// The same as comma-separated values with a header line.
  Result<std::string> (*csv)(Session&);
};

/// Every panel, in the order of the list.
std::span<const PanelInfo> all_panels();
/// `panel`: one of them, not all.
const PanelInfo& info_of(Panel panel);
/// The one of that name; "all" stands for all of them.
std::optional<Panel> panel_from_name(std::string_view name);
/// "verdict", …, "all".
std::string_view panel_name(Panel panel);
/// "verdict, timeline, … or runs", and "or all" if that may be chosen too.
std::string panel_choice(bool or_all);

/// Shows the target of such a link.
Panel panel_of(Link::Kind kind);

/// The text of one panel or of all.
std::string panel_text(Session& session, Panel panel);
/// The CSV of one panel; `usage` for Panel::all.
Result<std::string> panel_csv(Session& session, Panel panel);

}  // namespace nanquest::viewer
