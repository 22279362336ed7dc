// Everything that can be done: by keys, by menu, by the list of actions; and finding places by words.
#include <gtest/gtest.h>

#include <set>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class Actions : public testing::OpenStory {
 protected:
  /// Another thing is shown after it, with other actions (folder_ui_test.cpp).
  static constexpr const char* kLeaves = "Runs of the folder";
  static std::set<std::string> names(Ui& ui) {
    std::set<std::string> out;
    for (const Action& action : ui.actions())
      EXPECT_TRUE(out.insert(action.name).second) << action.name << " twice";
    return out;
  }
};

TEST_F(Actions, EachIsInTheListAndRunsFromIt) {
  Driver first(session(), Panel::all);
  first.frame(5);
  const std::set<std::string> all = names(first.ui());
  EXPECT_GE(all.size(), 25u);
  for (const std::string& name : all) {
    if (name == "Back" || name == "Forward") continue;  // only after something was looked at
    if (name == kLeaves) continue;
    first.press(ImGuiKey_P, ImGuiMod_Ctrl);
    first.frame(2);
    first.type(name.c_str());
    ASSERT_TRUE(first.sees(name)) << name;
    first.press(ImGuiKey_Enter);
    first.frame(2);
    EXPECT_EQ(first.ui().last_action(), name);
    const bool asks = name == "All actions" || name == "Find" || name == "Keyboard" || name == "Open a run" ||
                      name == "Notes" || name == "Compare with another run" ||
                      name.ends_with("picture named");
    if (asks) {
      first.press(ImGuiKey_Escape);
      first.frame(2);
    }
    EXPECT_EQ(first.bad_vertices(), 0) << name;
  }
  EXPECT_TRUE(first.ui().wants_to_quit());
}

TEST_F(Actions, KeysRunWhatTheListSaysTheyDo) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  session().select_op(3);
  driver.frame(2);
  std::set<int> chords;
  for (const Action& action : driver.ui().actions()) {
    if (action.chord == 0 || action.name == kLeaves) continue;
    EXPECT_TRUE(chords.insert(action.chord).second) << action.name << ": two on the same keys";
    session().select_op(30);
    driver.frame(2);
    ImGuiIO& io = ImGui::GetIO();
    for (const ImGuiKey modifier : {ImGuiMod_Ctrl, ImGuiMod_Shift, ImGuiMod_Alt})
      if (action.chord & modifier) io.AddKeyEvent(modifier, true);
    io.AddKeyEvent(static_cast<ImGuiKey>(action.chord & ~ImGuiMod_Mask_), true);
    driver.frame();
    EXPECT_EQ(driver.ui().last_action(), action.name) << keys_of(action);
    io.AddKeyEvent(static_cast<ImGuiKey>(action.chord & ~ImGuiMod_Mask_), false);
    for (const ImGuiKey modifier : {ImGuiMod_Ctrl, ImGuiMod_Shift, ImGuiMod_Alt})
      io.AddKeyEvent(modifier, false);
    driver.frame(2);
    driver.press(ImGuiKey_Escape);
    driver.frame(2);
  }
}

TEST_F(Actions, MenusHoldThem) {
  std::set<std::string> menus;
  for (const Action& action : Driver(session(), Panel::all).ui().actions()) menus.insert(action.menu);
  EXPECT_GE(menus.size(), 5u);
  for (const std::string& menu : menus) {
    Driver driver(session(), Panel::all);
    driver.frame(5);
    ASSERT_TRUE(driver.click(menu)) << menu;
    for (const Action& action : driver.ui().actions()) {
      EXPECT_TRUE(action.menu != menu || driver.sees(action.name)) << action.name;
    }
  }
}

TEST_F(Actions, WordsOfAnActionFindIt) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  driver.press(ImGuiKey_P, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.type("norm weight");
  driver.press(ImGuiKey_Enter);
  driver.frame(2);
  EXPECT_EQ(session().selection().statistic, Statistic::weight);
  driver.press(ImGuiKey_P, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.type("no such action");
  driver.press(ImGuiKey_Enter);
  driver.press(ImGuiKey_Escape);
  EXPECT_EQ(driver.ui().last_action(), "All actions");
}

TEST_F(Actions, FindingLeadsToOpsLayersTensorsAndSteps) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  const auto find = [&](const char* words) {
    driver.press(ImGuiKey_F, ImGuiMod_Ctrl);
    driver.frame(2);
    driver.type(words);
    driver.press(ImGuiKey_Enter);
    driver.frame(3);
  };
  find("softmax blocks.2");
  const OpId op{session().selection().op};
  EXPECT_EQ(get(session().incident()->doc, op).name, "aten::_softmax");
  EXPECT_EQ(session().incident()->trace.module(op), "blocks.2.attention");
  find("head layer");
  EXPECT_EQ(session().selection().layer, "head");
  find("head.weight tensor");
  EXPECT_EQ(session().selection().tensor, "parameters/head.weight");
  find("step 40");
  EXPECT_EQ(session().selection().step, 40);
  find("90");
  EXPECT_EQ(session().incident()->doc.step, 90);
}

TEST_F(Actions, ArrowsChooseAmongWhatWasFound) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  const std::vector<Hit> hits = search(session(), "aten::mm");
  ASSERT_GT(hits.size(), 3u);
  driver.press(ImGuiKey_F, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.type("aten::mm");
  driver.press(ImGuiKey_DownArrow);
  driver.press(ImGuiKey_DownArrow);
  driver.press(ImGuiKey_UpArrow);
  driver.press(ImGuiKey_Enter);
  EXPECT_EQ(session().selection().op, hits[1].link.number);
}

TEST_F(Actions, CopiesAPanelAsTextCsvAndMarkdown) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  driver.click("Runs");
  for (const Action& action : driver.ui().actions()) {
    if (action.menu != "Copy") continue;
    ImGui::SetClipboardText("");
    action.run();
    EXPECT_NE(std::string(ImGui::GetClipboardText()).find("131"), std::string::npos) << action.name;
  }
}

TEST_F(Actions, OfOnePanelAloneThatOneIsCopied) {
  Driver driver(session(), Panel::norms);
  driver.frame(3);
  const std::set<std::string> all = names(driver.ui());
  EXPECT_TRUE(all.count("Copy Norms as text"));
  EXPECT_FALSE(all.count("Copy Verdict as text"));
}

TEST_F(Actions, WhatCannotBeCopiedIsSaidAndTheClipboardStays) {
  session().restore({});  // no incident: no tensor
  Driver driver(session(), Panel::tensor);
  driver.frame(3);
  ImGui::SetClipboardText("before");
  for (const Action& action : driver.ui().actions())
    if (action.name == "Copy Tensor as CSV") action.run();
  EXPECT_EQ(std::string(ImGui::GetClipboardText()), "before");
  EXPECT_TRUE(says(driver.ui().state().message, "no stored tensor")) << driver.ui().state().message;
}

TEST_F(Actions, NothingLeadsBackToARunThatIsNoLongerShown) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  session().select_op(3);
  driver.frame(2);
  ASSERT_TRUE(names(driver.ui()).count("Back"));
  session() = open(dir());
  driver.ui().begin_anew();
  driver.frame(2);
  EXPECT_FALSE(names(driver.ui()).count("Back"));
}

TEST_F(Actions, WhatComesWhileSomebodyLooksForItIsFound) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  driver.press(ImGuiKey_F, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.type("late_layer");
  EXPECT_FALSE(driver.sees("late_layer"));
  testing::write_series(dir(), {{"scalars", {"step"}, {0, 1}}, {"grad_norm", {"late_layer"}, {1, 2}}});
  ASSERT_TRUE(session().poll());
  driver.frame(3);
  EXPECT_TRUE(driver.sees("late_layer"));
}

}  // namespace
}  // namespace nanquest::viewer
