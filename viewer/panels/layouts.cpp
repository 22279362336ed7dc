#include "viewer/panels/layouts.h"

#include <algorithm>

namespace nanquest::viewer {
namespace {

/// Half a pixel of a window that is 4000 wide.
constexpr float kSame = 1e-4f;

// Boxes in the order of Place: left_top, left_bottom, side, right_top, right_middle, right_bottom,
// right_corner.
constexpr Box kLeft{0, 0, 0.37f, 0.64f}, kBelowLeft{0, 0.64f, 0.37f, 0.36f};
constexpr Box kUpperRight{0.3f, 0, 0.7f, 0.5f}, kLowerRight{0.3f, 0.5f, 0.7f, 0.5f};
constexpr Box kNarrow{0, 0, 0.3f, 0.58f}, kBelowNarrow{0, 0.58f, 0.3f, 0.42f};
constexpr Box kOps{0, 0, 0.5f, 0.6f}, kBelowOps{0, 0.6f, 0.5f, 0.4f}, kElements{0.5f, 0, 0.5f, 1};
constexpr Box kBoth{0, 0, 0.42f, 0.62f}, kBelowBoth{0, 0.62f, 0.42f, 0.38f};
constexpr Box kUpper{0.42f, 0, 0.58f, 0.5f}, kLower{0.42f, 0.5f, 0.58f, 0.5f};

constexpr LayoutInfo kLayouts[] = {
    {"overview",
     "what went wrong, where and since when",
     {kLeft,
      kBelowLeft,
      kBelowLeft,
      {0.37f, 0, 0.63f, 0.39f},  // from 1280x800 on four curves fit
      {0.37f, 0.39f, 0.63f, 0.3f},
      {0.37f, 0.69f, 0.3906f, 0.31f},
      {0.7606f, 0.69f, 0.2394f, 0.31f}},
     {Panel::verdict, Panel::runs, Panel::timeline, Panel::norms, Panel::trace, Panel::tensor, Panel::batch}},
    {"curves",
     "how it came to that: timeline and norms, large",
     {kNarrow, kBelowNarrow, kBelowNarrow, kUpperRight, kLowerRight, kLowerRight, kLowerRight},
     {Panel::norms, Panel::timeline, Panel::verdict, Panel::runs, Panel::batch, Panel::trace, Panel::tensor}},
    {"tensors",
     "what was computed: operations, batch and values",
     {kOps, kBelowOps, kBelowOps, kBelowOps, kBelowOps, kOps, kElements},
     {Panel::trace, Panel::tensor, Panel::batch, Panel::verdict, Panel::timeline, Panel::norms, Panel::runs}},
    {"compare",
     "runs beside each other, and their curves",
     {kBelowBoth, kBelowBoth, kBoth, kUpper, kLower, kLower, kLower},
     {Panel::runs, Panel::verdict, Panel::timeline, Panel::norms, Panel::batch, Panel::trace, Panel::tensor}},
};

float end_x(const Box& box) {
  return box.x + box.width;
}
float end_y(const Box& box) {
  return box.y + box.height;
}

bool box_holds(const Box& part, const Box& box) {
  return box.x >= part.x - kSame && box.y >= part.y - kSame && end_x(box) <= end_x(part) + kSame &&
         end_y(box) <= end_y(part) + kSame;
}

}  // namespace

std::span<const LayoutInfo> all_layouts() {
  return kLayouts;
}

const LayoutInfo* layout_from_name(std::string_view name) {
  const auto found = std::ranges::find(kLayouts, name, &LayoutInfo::name);
  return found == std::end(kLayouts) ? nullptr : found;
}

std::string layout_choice() {
  std::string text;
  for (const LayoutInfo& layout : kLayouts)
    text.append(text.empty() ? "" : &layout == std::end(kLayouts) - 1 ? " or " : ", ").append(layout.name);
  return text;
}

std::vector<Tabs> tabs_of(const LayoutInfo& layout) {
  std::vector<Tabs> all;
  for (const PanelInfo& panel : all_panels()) {
    const Box& box = layout.boxes[static_cast<std::size_t>(panel.place)];
    auto tabs = std::ranges::find(all, box, &Tabs::box);
    if (tabs == all.end()) tabs = all.insert(all.end(), {box, {}, panel.panel});
    tabs->panels.push_back(panel.panel);
  }
  for (Tabs& tabs : all)
    for (const Panel panel : layout.front)
      if (std::ranges::count(tabs.panels, panel) != 0) {
        tabs.front = panel;
        break;
      }
  return all;
}

std::optional<Cut> cut_of(const Box& part, std::span<const Tabs> boxes) {
  for (const bool upright : {true, false})
    for (const Tabs& one : boxes) {
      const float at = upright ? one.box.x : one.box.y;
      const float low = upright ? part.x : part.y, high = upright ? end_x(part) : end_y(part);
      if (!box_holds(part, one.box) || at <= low + kSame || at >= high - kSame) continue;
      const auto crosses = [&](const Tabs& other) {
        const float from = upright ? other.box.x : other.box.y;
        const float to = upright ? end_x(other.box) : end_y(other.box);
        return box_holds(part, other.box) && from < at - kSame && to > at + kSame;
      };
      if (std::ranges::none_of(boxes, crosses)) return Cut{upright, at};
    }
  return std::nullopt;
}

}  // namespace nanquest::viewer
