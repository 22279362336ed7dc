// What a person sees while something is read, and what they can do meanwhile.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/app/follower.h"

namespace nanquest::viewer {
namespace {

using testing::Driver;

class ReadingUi : public testing::OpenStory {
 protected:
  /// An errand that runs until it is stopped or released.
  Loader::Errand slow() {
    return {"step 90",
            [this](Session& s) {
              s.progress()->expect(10);
              s.progress()->advance(4);
              began_ = true;
              while (!s.progress()->stopped() && !goes_on_)
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
              s.select_step(90);
              return true;
            },
            {},
            true};
  }
  void begin(Driver& driver) {
    driver.ui().state().read(slow());
    while (!began_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    driver.frame(2);
  }
  std::atomic<bool> began_{false}, goes_on_{false};
  Loader loader_;
};

TEST_F(ReadingUi, PanelsStayUsableMeanwhile) {
  Driver driver(session(), Panel::all, 1600, 1000, &loader_);
  driver.frame(5);
  driver.read(loader_);
  begin(driver);
  EXPECT_EQ(driver.ui().state().doing(), "reading step 90, 40 %");
  EXPECT_TRUE(driver.sees("Stop"));
  ASSERT_TRUE(driver.click("Weight norm"));
  EXPECT_EQ(session().selection().statistic, Statistic::weight);
  EXPECT_EQ(session().incident()->doc.step, 131) << "what is shown stays until the other is there";
  goes_on_ = true;
  driver.read(loader_);
  driver.frame(2);
  EXPECT_EQ(session().incident()->doc.step, 90);
  EXPECT_EQ(session().selection().statistic, Statistic::weight)
      << "and what was chosen meanwhile stays chosen";
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(ReadingUi, ARunBesideThatWentAwayIsNoNewData) {
  const std::string other = temp_.path() + "/other";
  testing::write_run(other);
  ASSERT_TRUE(session().compare_with({other}));
  Driver driver(session(), Panel::all, 1600, 1000, &loader_);
  driver.frame(5);
  driver.read(loader_);
  driver.frame(2);
  const int warned = driver.coloured(ImGui::GetColorU32(colour().orange));
  Follower follower;
  const auto look = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1050));
    driver.ui().state().message.clear();
    follower.look(driver.ui().state());
    driver.read(loader_);
    driver.frame(2);
  };
  std::filesystem::remove_all(other);
  look();
  EXPECT_EQ(driver.ui().state().message, "");
  EXPECT_TRUE(session().lost_of_any().ends_with("what is shown was read before")) << session().lost_of_any();
  EXPECT_GT(driver.coloured(ImGui::GetColorU32(colour().orange)), warned) << "said in the menu bar";
  testing::write_run(other);
  look();
  EXPECT_EQ(driver.ui().state().message, "New data");
  EXPECT_EQ(driver.coloured(ImGui::GetColorU32(colour().orange)), warned);
}

TEST_F(ReadingUi, EscapeAndTheButtonStop) {
  Driver driver(session(), Panel::all, 1600, 1000, &loader_);
  driver.frame(5);
  driver.read(loader_);
  begin(driver);
  driver.press(ImGuiKey_Escape);
  EXPECT_EQ(driver.ui().state().doing(), "");
  EXPECT_FALSE(driver.sees("Stop"));
  began_ = false;
  begin(driver);
  ASSERT_TRUE(driver.click("Stop"));
  EXPECT_EQ(driver.ui().state().doing(), "");
  driver.frame(3);
  EXPECT_EQ(session().incident()->doc.step, 131);
}

TEST_F(ReadingUi, AClickOpensAnIncident) {
  Driver driver(session(), Panel::runs, 1280, 800, &loader_);
  driver.frame(5);
  ASSERT_TRUE(driver.click("90"));
  driver.read(loader_);
  EXPECT_EQ(session().incident()->doc.step, 90);
}

TEST_F(ReadingUi, BackAndForthAcrossIncidents) {
  Driver driver(session(), Panel::all, 1600, 1000, &loader_);
  driver.frame(5);
  driver.read(loader_);
  driver.press(ImGuiKey_I);
  driver.read(loader_);
  driver.frame(2);
  ASSERT_EQ(session().incident()->doc.step, 90);
  driver.press(ImGuiKey_LeftArrow, ImGuiMod_Alt);
  driver.read(loader_);
  driver.frame(2);
  EXPECT_EQ(session().incident()->doc.step, 131);
  driver.press(ImGuiKey_RightArrow, ImGuiMod_Alt);
  driver.read(loader_);
  EXPECT_EQ(session().incident()->doc.step, 90);
}

TEST_F(ReadingUi, ATensorComesWhenItIsRead) {
  session().select_tensor("parameters/head.weight");
  Driver driver(session(), Panel::tensor, 1280, 800, &loader_);
  driver.frame(1);
  EXPECT_EQ(session().read_detail(), nullptr) << "the thread that draws has read it";
  driver.read(loader_);
  ASSERT_NE(session().read_detail(), nullptr);
  EXPECT_EQ(session().read_detail()->tensor.path, "parameters/head.weight");
  driver.frame(3);
  EXPECT_FALSE(loader_.busy()) << "it is asked for once";
}

TEST_F(ReadingUi, AStoppedTensorIsReadWhenThePersonSaysSo) {
  session().select_tensor("parameters/head.weight");
  Driver driver(session(), Panel::tensor, 1280, 800, &loader_);
  driver.frame(1);
  ASSERT_TRUE(loader_.cancel());
  driver.frame(5);
  EXPECT_EQ(session().read_detail(), nullptr);
  EXPECT_FALSE(loader_.busy());
  ASSERT_TRUE(driver.click("Read it"));
  driver.read(loader_);
  EXPECT_NE(session().read_detail(), nullptr);
}

TEST_F(ReadingUi, CopyingReadsWhatIsMissing) {
  session().select_tensor("parameters/head.weight");
  Driver driver(session(), Panel::tensor, 1280, 800, &loader_);
  driver.frame(1);
  for (const Action& action : driver.ui().actions())
    if (action.name == "Copy Tensor as CSV") action.run();
  driver.read(loader_);
  EXPECT_TRUE(says(ImGui::GetClipboardText(), "parameters/head.weight,exponent,zero,"))
      << ImGui::GetClipboardText();
}

/// A large run opens its window before it is read.
TEST_F(ReadingUi, EveryPanelSaysThatItIsBeingRead) {
  for (const PanelInfo& panel : all_panels()) {
    Session nothing = Session::nothing(dir());
    Driver driver(nothing, panel.panel, 1280, 800, &loader_);
    began_ = goes_on_ = false;
    driver.ui().state().read(slow());
    while (!began_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    driver.frame(2);
    EXPECT_TRUE(driver.sees("Stop")) << panel.title;
    driver.press(ImGuiKey_Escape);
    EXPECT_FALSE(loader_.busy()) << panel.title;
    driver.press(ImGuiKey_R, ImGuiMod_Ctrl);
    driver.read(loader_);
    driver.frame(2);
    EXPECT_FALSE(nothing.is_nothing()) << panel.title;
    EXPECT_FALSE(nothing.history().empty());
  }
}

TEST_F(ReadingUi, WhatCannotBeOpenedIsSaidAndTheOtherStays) {
  Driver driver(session(), Panel::all, 1600, 1000, &loader_);
  driver.frame(5);
  driver.read(loader_);
  driver.ui().state().open(temp_.path() + "/none");
  driver.read(loader_);
  EXPECT_TRUE(says(driver.ui().state().message, "no such file")) << driver.ui().state().message;
  EXPECT_EQ(session().incident()->doc.step, 131);
}

}  // namespace
}  // namespace nanquest::viewer
