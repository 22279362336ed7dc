// Following links from a panel's text to other panels: links, the strip, back and forward.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/run_dir.h"
#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class Jump : public testing::OpenStory {
 protected:
  void SetUp() override {
    OpenStory::SetUp();
    culprit_ = session().incident()->doc.culprit.op;
  }
  /// Clicks on a label while another op and another step are selected.
  bool click_from_elsewhere(Driver& driver, const std::string& label) {
    driver.frame(5);
    session().select_op(3);
    session().select_step(12);
    driver.frame(2);
    return driver.click(label);
  }
  std::int32_t culprit_ = kNone;
};

/// The window that has the keyboard.
std::string in_front() {
  const ImGuiWindow* window = ImGui::GetCurrentContext()->NavWindow;
  return window == nullptr ? "" : window->RootWindow->Name;
}

TEST_F(Jump, AnOpInTheVerdictLeadsToTheTrace) {
  Driver driver(session(), Panel::all);
  ASSERT_TRUE(click_from_elsewhere(driver, "op " + std::to_string(culprit_)));
  EXPECT_EQ(session().selection().op, culprit_);
  EXPECT_EQ(in_front(), "Trace");
}

TEST_F(Jump, AStepLeadsToTheTimeline) {
  Driver driver(session(), Panel::all);
  ASSERT_TRUE(click_from_elsewhere(driver, "step 131"));
  EXPECT_EQ(session().selection().step, 131);
  EXPECT_EQ(in_front(), "Timeline");
}

TEST_F(Jump, ARowOfTheEvidenceLeadsToTheOpThatItWasMeasuredOn) {
  Driver driver(session(), Panel::verdict, 1280, 1400);
  ASSERT_TRUE(click_from_elsewhere(driver, "amax of input 0 (fp16)"));
  EXPECT_EQ(session().selection().op, culprit_);
}

/// All of it may come between two frames, as it does when a key is tapped; Alt alone opens the menu.
TEST_F(Jump, ATapOfAltAndLeftGoesBack) {
  for (const bool at_once : {false, true}) {
    Driver driver(session(), Panel::all);
    ImGuiIO& io = ImGui::GetIO();
    io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
    session().select_op(3);
    driver.frame(5);
    session().select_op(7);
    driver.frame(2);
    for (const auto& [key, down] : {std::pair{ImGuiMod_Alt, true},
                                    {ImGuiKey_LeftAlt, true},
                                    {ImGuiKey_LeftArrow, true},
                                    {ImGuiKey_LeftArrow, false},
                                    {ImGuiMod_Alt, false},
                                    {ImGuiKey_LeftAlt, false}}) {
      io.AddKeyEvent(static_cast<ImGuiKey>(key), down);
      if (!at_once) driver.frame();
    }
    driver.frame(4);
    EXPECT_EQ(session().selection().op, 3) << (at_once ? "between two frames" : "a frame each");
  }
}

/// What nanquest-replay repro says names three files by their whole paths.
TEST_F(Jump, ALongMessageCoversNoMenu) {
  Driver driver(session(), Panel::all);
  driver.frame(4);
  driver.ui().state().message = "made in 1 s: " + std::string(400, 'x');
  driver.frame(2);
  const ImU32 muted = ImGui::GetColorU32(colour().muted), text = ImGui::GetColorU32(ImGuiCol_Text);
  const float bar = ImGui::GetMainViewport()->WorkPos.y - ImGui::GetMainViewport()->Pos.y;
  float title = 0;
  int over = 0, beyond = 0;
  const auto each = [](const auto& look) {
    for (const ImDrawList* list : ImGui::GetDrawData()->CmdLists)
      for (const ImDrawVert& v : list->VtxBuffer) look(v);
  };
  each([&](const ImDrawVert& v) {
    if (v.pos.y < bar / 2 && v.col == text) title = std::max(title, v.pos.x);
  });
  each([&](const ImDrawVert& v) {
    if (v.pos.y < bar / 2 && v.col == muted) ++(v.pos.x < title ? over : beyond);
  });
  EXPECT_GT(title, 300);
  EXPECT_LE(over, 8) << "the bar before the title alone";
  EXPECT_GT(beyond, 40) << "the beginning of the message";
}

TEST_F(Jump, F1ShowsTheKeys) {
  Driver driver(session(), Panel::all);
  driver.frame(3);
  driver.press(ImGuiKey_F1);
  EXPECT_EQ(in_front(), "Keyboard");
}

/// Page and links are made once for what is shown.
TEST_F(Jump, AVerdictThatComesIsDrawnWithItsLinks) {
  const std::string measured = "amax of input 0 (fp16)";
  std::filesystem::remove(verdict_path(snapshot_));
  ASSERT_TRUE(session().reload());
  Driver driver(session(), Panel::verdict, 1280, 1400);
  driver.frame(5);
  EXPECT_FALSE(driver.sees(measured));
  ASSERT_TRUE(write_file_atomically(verdict_path(snapshot_), testing::fixture_verdict()));
  ASSERT_TRUE(session().poll());
  driver.frame(2);
  EXPECT_TRUE(driver.sees(measured));
  session().select_step(90);
  driver.frame(2);
  EXPECT_FALSE(driver.sees(measured));
}

TEST_F(Jump, TheStripLeadsToWhereItBroke) {
  Driver driver(session(), Panel::all);
  ASSERT_TRUE(click_from_elsewhere(driver, "Where it broke"));
  EXPECT_EQ(session().selection().op, culprit_);
  EXPECT_EQ(in_front(), "Trace");
}

TEST_F(Jump, AltArrowsGoBackAndForth) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  const Selection first = session().selection();
  session().select_op(3);
  driver.frame(2);
  const Selection second = session().selection();
  session().select_step(90);  // another incident
  driver.frame(2);
  driver.press(ImGuiKey_LeftArrow, ImGuiMod_Alt);
  EXPECT_EQ(session().selection(), second);
  EXPECT_EQ(session().incident()->doc.step, 131);
  driver.press(ImGuiKey_LeftArrow, ImGuiMod_Alt);
  EXPECT_EQ(session().selection(), first);
  driver.press(ImGuiKey_RightArrow, ImGuiMod_Alt);
  driver.press(ImGuiKey_RightArrow, ImGuiMod_Alt);
  EXPECT_EQ(session().incident()->doc.step, 90);
}

TEST_F(Jump, FollowingIsSwitchedByKeyAndButton) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  EXPECT_TRUE(driver.ui().state().follow);
  driver.press(ImGuiKey_F);
  EXPECT_FALSE(driver.ui().state().follow);
  ASSERT_TRUE(driver.click("FOLLOW"));
  EXPECT_TRUE(driver.ui().state().follow);
}

TEST_F(Jump, LinksAreWhollyInTheirPanelAtEveryWidth) {
  for (const float width : {480.0f, 640.0f, 960.0f}) {
    Driver driver(session(), Panel::verdict, width, 3000);
    driver.frame(5);
    EXPECT_EQ(driver.bad_vertices(), 0);
    for (const auto& [label, item] : driver.items()) {
      const bool link = label.find("aten::") == 0 || label.find("blocks.") == 0;
      EXPECT_TRUE(!link || item.x1 <= width) << label << " at " << item.x1;
    }
  }
}

TEST_F(Jump, TheChosenOpStaysInSightWhenTheListShrinks) {
  Driver driver(session(), Panel::trace, 1280, 900);
  driver.frame(5);
  ASSERT_TRUE(driver.sees(std::to_string(culprit_)));
  ImGui::GetIO().DisplaySize = {1280, 320};
  driver.frame(3);
  EXPECT_TRUE(driver.sees(std::to_string(culprit_)));
}

}  // namespace
}  // namespace nanquest::viewer
