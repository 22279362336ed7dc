/// Layouts: arrangements of all panels, for different tasks. Each assigns a box of the window to every place
/// of the list; places with the same box share it as tabs. No Dear ImGui: the command line uses them.
///
///     for (const LayoutInfo& layout : all_layouts()) std::cout << layout.name;
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "viewer/panels/registry.h"

namespace nanquest::viewer {

/// A part of the window, as shares of its width and height, from the upper left corner.
struct Box {
  float x = 0, y = 0, width = 1, height = 1;
  bool operator==(const Box&) const = default;
};

struct LayoutInfo {
  std::string_view name;                 ///< on the command line: "overview"
  const char* purpose;                   ///< "what went wrong, and since when"
  std::array<Box, kLayoutPlaces> boxes;  ///< one per place; they fill the window, and can be split along
                                         ///< whole lines
  std::array<Panel, kLayoutPlaces>
      front;  ///< in front if they share a box; earlier ones have priority, the first has the keyboard
};

/// Every layout, the default first; the first four have keys.
std::span<const LayoutInfo> all_layouts();
/// Null if there is none of that name.
const LayoutInfo* layout_from_name(std::string_view name);
/// "overview, curves, tensors or compare".
std::string layout_choice();

/// The panels that share a box, in the order of the list; the one in front is `front`.
struct Tabs {
  Box box;
  std::vector<Panel> panels;
  Panel front = Panel{};
};
/// All boxes of a layout; each panel is in one of them.
std::vector<Tabs> tabs_of(const LayoutInfo& layout);

/// A cut through a part of the window that crosses no box.
struct Cut {
  bool upright = true;  ///< left and right of it; otherwise above and below
  float at = 0;         ///< in shares of the window
};
/// How to split `part`, which these boxes fill; nothing if it is one box, or if every line would cross one.
std::optional<Cut> cut_of(const Box& part, std::span<const Tabs> boxes);

}  // namespace nanquest::viewer
