// Layouts: every panel has a place in each, and their boxes fill the window.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "viewer/panels/layouts.h"

namespace nanquest::viewer {
namespace {

bool inside(const Box& box, float x, float y) {
  return x > box.x && x < box.x + box.width && y > box.y && y < box.y + box.height;
}

TEST(Layouts, EachHoldsEveryPanelOnceAndShowsOneOfEachBox) {
  ASSERT_EQ(all_layouts().size(), 4u);
  for (const LayoutInfo& layout : all_layouts()) {
    std::multiset<Panel> panels;
    for (const Tabs& tabs : tabs_of(layout)) {
      panels.insert(tabs.panels.begin(), tabs.panels.end());
      EXPECT_EQ(std::ranges::count(tabs.panels, tabs.front), 1) << layout.name;
    }
    for (const PanelInfo& info : all_panels())
      EXPECT_EQ(panels.count(info.panel), 1u) << layout.name << info.name;
    EXPECT_EQ(panels.size(), all_panels().size());
  }
}

TEST(Layouts, BoxesFillTheWindowAndDoNotOverlap) {
  for (const LayoutInfo& layout : all_layouts())
    for (float x = 0.0037f; x < 1; x += 0.01f)
      for (float y = 0.0037f; y < 1; y += 0.01f) {
        const auto all = tabs_of(layout);
        const auto there =
            std::ranges::count_if(all, [&](const Tabs& tabs) { return inside(tabs.box, x, y); });
        ASSERT_EQ(there, 1) << layout.name << " at " << x << ", " << y;
      }
}

/// Cuts until every part is one box, as the docking does.
int parts_of(const Box& part, const std::vector<Tabs>& all) {
  const auto cut = cut_of(part, all);
  if (!cut) {
    int here = 0;
    for (const Tabs& tabs : all)
      here += inside(part, tabs.box.x + tabs.box.width / 2, tabs.box.y + tabs.box.height / 2);
    EXPECT_EQ(here, 1) << "a part that no line cuts holds " << here << " boxes";
    return 1;
  }
  Box first = part, second = part;
  if (cut->upright) {
    first.width = cut->at - part.x, second.x = cut->at, second.width = part.width - first.width;
  } else {
    first.height = cut->at - part.y, second.y = cut->at, second.height = part.height - first.height;
  }
  return parts_of(first, all) + parts_of(second, all);
}

TEST(Layouts, WholeLinesCutThemIntoTheirBoxes) {
  for (const LayoutInfo& layout : all_layouts()) {
    const std::vector<Tabs> all = tabs_of(layout);
    EXPECT_EQ(parts_of({}, all), static_cast<int>(all.size())) << layout.name;
  }
  // A pinwheel has no such line: nothing is cut, and nothing hangs.
  const std::vector<Tabs> pinwheel = {{{0, 0, 0.6f, 0.4f}, {}, {}},
                                      {{0.6f, 0, 0.4f, 0.6f}, {}, {}},
                                      {{0.4f, 0.6f, 0.6f, 0.4f}, {}, {}},
                                      {{0, 0.4f, 0.4f, 0.6f}, {}, {}},
                                      {{0.4f, 0.4f, 0.2f, 0.2f}, {}, {}}};
  EXPECT_FALSE(cut_of({}, pinwheel));
}

TEST(Layouts, AreFoundByName) {
  for (const LayoutInfo& layout : all_layouts()) EXPECT_EQ(layout_from_name(layout.name), &layout);
  EXPECT_EQ(layout_from_name("verdict"), nullptr);
  EXPECT_EQ(layout_from_name(""), nullptr);
  EXPECT_EQ(layout_choice(), "overview, curves, tensors or compare");
}

}  // namespace
}  // namespace nanquest::viewer
