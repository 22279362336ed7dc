// Layouts by key and by name, a run that is restored as it was left, notes.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/panels/notes.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class DeskUi : public testing::OpenStory {
 protected:
  void SetUp() override {
    OpenStory::SetUp();
    testing::write_run(other(), {.incidents = 1});
  }
  std::string other() const { return temp_.path() + "/other"; }
  OwnFolders folders() const { return {temp_.path() + "/config", temp_.path() + "/state"}; }
  static std::vector<std::string> seen() {
    std::vector<std::string> names;
    for (const PanelInfo& info : all_panels())
      if (Driver::shows(info.title)) names.emplace_back(info.name);
    return names;
  }
};

TEST_F(DeskUi, AltAndANumberArrangeThePanels) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  for (std::size_t i = all_layouts().size(); i-- > 0;) {
    const LayoutInfo& layout = all_layouts()[i];
    driver.press(static_cast<ImGuiKey>(ImGuiKey_1 + static_cast<int>(i)), ImGuiMod_Alt);
    driver.frame(4);
    EXPECT_EQ(&driver.ui().layout(), &layout);
    std::vector<Panel> front;
    for (const Tabs& tabs : tabs_of(layout)) {
      front.push_back(tabs.front);
      const ImGuiWindow* window = ImGui::FindWindowByName(info_of(tabs.front).title);
      const ImVec2 work = ImGui::GetMainViewport()->WorkSize;
      EXPECT_NEAR(window->Size.x / work.x, tabs.box.width, 0.02) << layout.name << window->Name;
      EXPECT_NEAR(window->Size.y / work.y, tabs.box.height, 0.04) << layout.name << window->Name;
    }
    for (const PanelInfo& info : all_panels()) {
      const ImGuiWindow* window = ImGui::FindWindowByName(info.title);
      const bool in_front = std::ranges::count(front, info.panel) != 0;
      EXPECT_EQ(window->Active && !window->Hidden, in_front) << layout.name << ": " << info.title;
    }
    EXPECT_EQ(driver.bad_vertices(), 0);
  }
}

TEST_F(DeskUi, ALayoutIsNamedBeforeTheFirstFrame) {
  session().set_notes({});
  for (const LayoutInfo& layout : all_layouts()) {
    Driver driver(session(), Panel::all);
    driver.ui().show_layout(layout);
    driver.frame(5);
    for (const Tabs& tabs : tabs_of(layout)) {
      const ImGuiWindow* window = ImGui::FindWindowByName(info_of(tabs.front).title);
      EXPECT_TRUE(window->Active && !window->Hidden) << layout.name << ": " << window->Name;
    }
  }
}

TEST_F(DeskUi, AnotherRunAndBackIsAsItWasLeft) {
  Driver driver(session(), Panel::all);
  driver.ui().state().options.folders = folders();
  driver.frame(5);
  session().select_op(30);
  session().select_statistic(Statistic::weight);
  driver.press(ImGuiKey_2, ImGuiMod_Alt);
  driver.frame(4);
  driver.press(ImGuiKey_4, ImGuiMod_Ctrl);  // the trace, in front of the norms
  driver.frame(4);
  driver.ui().state().steps.show(20, 60);
  driver.frame(3);
  const auto before = seen();
  EXPECT_EQ(std::ranges::count(before, "trace"), 1);
  EXPECT_EQ(std::ranges::count(before, "norms"), 0);
  const Selection selection = session().selection();

  driver.ui().state().open(other());
  driver.frame(5);
  EXPECT_EQ(session().title(), "other");
  driver.press(ImGuiKey_1, ImGuiMod_Alt);
  driver.frame(4);
  EXPECT_GT(driver.ui().state().steps.last, 100) << "all steps of a run that nobody left";

  driver.ui().state().open(dir());
  driver.frame(8);
  EXPECT_EQ(driver.ui().state().message, "As you left it");
  EXPECT_EQ(driver.ui().layout().name, "curves");
  EXPECT_EQ(session().selection(), selection);
  EXPECT_EQ(driver.ui().state().steps.first, 20);
  EXPECT_EQ(driver.ui().state().steps.last, 60);
  EXPECT_EQ(seen(), before);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(DeskUi, ANoteLeadsBackToWhereItWasWritten) {
  Driver driver(session(), Panel::all);
  driver.ui().state().options.folders = folders();
  driver.frame(5);
  session().select_op(30);
  driver.press(ImGuiKey_4, ImGuiMod_Ctrl);
  driver.frame(4);
  driver.press(ImGuiKey_N, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.type("too steep here");
  ASSERT_TRUE(driver.sees("Note: too steep here"));
  driver.press(ImGuiKey_Enter);
  driver.frame(3);
  ASSERT_EQ(session().notes().size(), 1u);
  EXPECT_EQ(session().notes()[0], (Note{"too steep here", {131}, Link::to_op(30)}));
  EXPECT_EQ(read_desk(folders().state, dir())->notes, session().notes()) << "kept at once";

  session().select_incident(0);
  ASSERT_EQ(session().entry()->files.step, 90);
  driver.press(ImGuiKey_N, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.type("STEEP 131");
  ASSERT_TRUE(driver.click("too steep here"));
  driver.frame(4);
  EXPECT_EQ(session().entry()->files.step, 131);
  EXPECT_EQ(session().selection().op, 30);

  driver.press(ImGuiKey_N, ImGuiMod_Ctrl);
  driver.frame(2);
  ASSERT_TRUE(driver.click("Remove: too steep here"));
  driver.frame(3);
  EXPECT_TRUE(session().notes().empty());
  EXPECT_TRUE(read_desk(folders().state, dir())->notes.empty());
}

TEST_F(DeskUi, NotesOutliveReadingAgainAndAreLinksInTheRuns) {
  Loader loader;
  Driver driver(session(), Panel::runs, 1280, 800, &loader);
  driver.frame(3);
  session().set_notes({{"steep", {131}, Link::to_op(30)}});
  driver.ui().run_named("Reload");
  session().set_notes({{"steep", {131}, Link::to_op(30)}, {"later", {}, Link::to_step(90)}});
  driver.read(loader);
  driver.frame(3);
  ASSERT_EQ(session().notes().size(), 2u);
  ASSERT_TRUE(driver.click("step 131, op 30"));
  driver.frame(3);
  EXPECT_EQ(session().selection().op, 30);
}

TEST_F(DeskUi, NotesAreOnWhatThePanelIsAbout) {
  session().select_op(30);
  const Selection& s = session().selection();
  EXPECT_EQ(looked_at(session(), Panel::trace), Link::to_op(30));
  EXPECT_EQ(looked_at(session(), Panel::norms), Link::to_layer(s.layer, s.statistic));
  EXPECT_EQ(looked_at(session(), Panel::tensor), Link::to_tensor(s.tensor));
  EXPECT_EQ(looked_at(session(), Panel::timeline), Link::to_step(131));
}

}  // namespace
}  // namespace nanquest::viewer
