// What works wherever one is: opening another run, recent runs, size, pictures of panels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/viewer/driver.h"
#include "tests/viewer/story.h"
#include "viewer/model/kept.h"
#include "viewer/model/path_words.h"
#include "viewer/model/settings.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;
using testing::Driver;

class Everywhere : public testing::OpenStory {
 protected:
  void SetUp() override {
    OpenStory::SetUp();
    testing::write_run(other(), {.incidents = 1});
  }
  std::string other() const { return temp_.path() + "/other"; }
  std::string settings() const { return temp_.path() + "/config"; }
  std::vector<std::string> recent() const {
    std::vector<std::string> paths;
    for (const RecentRun& run : recent_runs(settings())) paths.push_back(run.path);
    return paths;
  }
};

TEST_F(Everywhere, ControlOOpensAPathThatIsTyped) {
  Driver driver(session(), Panel::all);
  driver.ui().state().options.folders.settings = settings();
  driver.frame(5);
  driver.press(ImGuiKey_O, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.type((" '" + other() + "'\n").c_str());  // as it is pasted from somewhere
  ASSERT_TRUE(driver.sees("Open " + other()));
  driver.press(ImGuiKey_Enter);
  driver.frame(3);
  EXPECT_EQ(session().title(), "other");
  EXPECT_EQ(driver.ui().state().message, "Opened " + other());
  EXPECT_EQ(recent(), std::vector<std::string>{other()});
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(Everywhere, WhatCannotBeOpenedIsSaidAndTheRunStays) {
  Driver driver(session(), Panel::all);
  driver.ui().state().options.folders.settings = settings();
  driver.frame(5);
  driver.press(ImGuiKey_O, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.type("/no/such/run");
  driver.press(ImGuiKey_Enter);
  driver.frame(3);
  EXPECT_EQ(session().title(), "story");
  EXPECT_TRUE(says(driver.ui().state().message, "/no/such/run: no such file")) << driver.ui().state().message;
  EXPECT_TRUE(recent().empty());
}

TEST_F(Everywhere, RecentRunsAreListedAndWordsChooseAmongThem) {
  for (const std::string& path : {dir(), other(), temp_.path() + "/vanished"})
    ASSERT_TRUE(note_recent(settings(), path));
  Loader loader;
  Driver driver(session(), Panel::all, 1280, 800, &loader);
  driver.ui().state().options.folders.settings = settings();
  driver.frame(5);
  driver.read(loader);
  driver.press(ImGuiKey_O, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.read(loader);
  driver.frame(2);
  for (const std::string& path : {dir(), other(), temp_.path() + "/vanished"})
    EXPECT_TRUE(driver.sees(path)) << path;
  driver.type("other");
  EXPECT_FALSE(driver.sees(dir()));
  driver.press(ImGuiKey_Enter);
  driver.read(loader);
  driver.frame(3);
  EXPECT_EQ(session().title(), "other");
  EXPECT_EQ(recent().front(), other());
}

TEST_F(Everywhere, AtMostTwentyRecentRunsNewestFirstEachOnce) {
  for (int i = 0; i < 25; ++i)
    ASSERT_TRUE(note_recent(settings(), temp_.path() + "/run" + std::to_string(i) + "/"));
  ASSERT_TRUE(note_recent(settings(), temp_.path() + "/x/../run10"));
  const std::vector<RecentRun> runs = recent_runs(settings());
  ASSERT_EQ(runs.size(), kMostRecent);
  EXPECT_EQ(runs[0].path, temp_.path() + "/run10");
  EXPECT_EQ(runs[1].path, temp_.path() + "/run24");
  EXPECT_EQ(std::ranges::count(runs, runs[0].path, &RecentRun::path), 1);
  EXPECT_FALSE(runs[0].there);
  ASSERT_TRUE(note_recent(settings(), dir()));
  EXPECT_TRUE(recent_runs(settings())[0].there);
  EXPECT_TRUE(note_recent("", dir())) << "where nothing is kept, nothing is wrong";
  EXPECT_TRUE(recent_runs("").empty());
  EXPECT_FALSE(note_recent("/proc/none", dir()));
}

TEST_F(Everywhere, ControlBPutsAnotherRunBesideThisOne) {
  std::vector<SeriesTable> tables = testing::fixture_history(160);
  for (std::size_t step = 60; step < 160; ++step) testing::column_of(tables, "scalars", "loss")[step] += 1;
  testing::write_series(other(), tables);
  Loader loader;
  Driver driver(session(), Panel::all, 1600, 1000, &loader);
  driver.frame(5);
  driver.read(loader);
  driver.frame(2);
  const int before = driver.vertices();
  driver.press(ImGuiKey_B, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.type(other().c_str());
  driver.press(ImGuiKey_Enter);
  driver.read(loader);
  driver.frame(3);
  ASSERT_EQ(session().others().size(), 1U) << driver.ui().state().message;
  EXPECT_TRUE(says(driver.ui().state().message, "story and other differ from step 60 on"));
  EXPECT_GT(driver.ui().state().steps.last, 158) << "one range of steps has room for both";
  EXPECT_GT(driver.vertices(), before + 200) << "their curves are beside each other";
  ASSERT_TRUE(driver.click("step 60"));  // where the loss parts
  driver.read(loader);
  driver.frame(2);
  EXPECT_EQ(session().selection().step, 60);
  EXPECT_EQ(session().others().size(), 1U);
  ASSERT_TRUE(driver.ui().run_named("End the comparison"));
  driver.read(loader);
  driver.frame(3);
  EXPECT_TRUE(session().others().empty());
  EXPECT_FALSE(driver.ui().run_named("End the comparison"));
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST(PathAsTyped, IsWithoutWhatComesWithIt) {
  EXPECT_EQ(path_as_typed("  runs/my story \n"), "runs/my story");
  EXPECT_EQ(path_as_typed("\"/a b\""), "/a b");
  EXPECT_EQ(path_as_typed("file:///a/b"), "/a/b");
  EXPECT_EQ(path_as_typed("~/runs"), std::string(std::getenv("HOME")) + "/runs");
  EXPECT_EQ(path_as_typed("~runs"), "~runs");
  EXPECT_EQ(path_as_typed("  "), "");
}

TEST_F(Everywhere, ControlPlusAndMinusChangeTheSizeAndZeroBringsItBack) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  // Of a word of the menu, in pixels.
  const auto width = [&] { return driver.items().at("File").x1 - driver.items().at("File").x0; };
  const float before = width();
  driver.press(ImGuiKey_Equal, ImGuiMod_Ctrl);
  EXPECT_EQ(current_size(), 110);
  EXPECT_EQ(driver.ui().state().message, "Size 110 %");
  EXPECT_NEAR(width(), before * 1.1f, 2);
  driver.press(ImGuiKey_KeypadAdd, ImGuiMod_Ctrl);
  EXPECT_EQ(current_size(), 125);
  for (int i = 0; i < 20; ++i) driver.press(ImGuiKey_Equal, ImGuiMod_Ctrl);
  EXPECT_EQ(current_size(), kMostSize);
  driver.frame(3);
  EXPECT_NEAR(width(), before * 4, 8);
  for (int i = 0; i < 20; ++i) driver.press(ImGuiKey_Minus, ImGuiMod_Ctrl);
  EXPECT_EQ(current_size(), kLeastSize);
  driver.press(ImGuiKey_0, ImGuiMod_Ctrl);
  EXPECT_EQ(current_size(), 100);
  EXPECT_EQ(width(), before);
  EXPECT_EQ(ImGui::GetStyle().WindowPadding.x, 12);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(Everywhere, TheThemeStaysWhenTheSizeChanges) {
  Driver driver(session(), Panel::all);
  driver.frame(3);
  ASSERT_TRUE(driver.ui().run_named("Theme light"));
  driver.press(ImGuiKey_Equal, ImGuiMod_Ctrl);
  EXPECT_EQ(current_theme(), Theme::light);
  EXPECT_EQ(ImGui::GetStyle().Colors[ImGuiCol_WindowBg].x, colour().ground.x);
  set_theme(Theme::dark);
}

TEST_F(Everywhere, APictureIsTakenOfThePanelAloneOnceNothingIsAboveIt) {
  Driver driver(session(), Panel::all);
  driver.frame(5);
  driver.press(ImGuiKey_1, ImGuiMod_Ctrl);  // the verdict
  driver.frame(3);
  driver.press(ImGuiKey_P, ImGuiMod_Ctrl);
  driver.frame(2);
  driver.type("Save the panel as picture");
  driver.press(ImGuiKey_Enter);  // draws frames with the list still there
  std::optional<PictureSaver::Due> due;
  for (int i = 0; i < 5 && !due; ++i) {
    driver.frame();
    due = driver.ui().picture_due();
  }
  ASSERT_TRUE(due);
  EXPECT_EQ(due->path, "story-step131-verdict.png");
  const ImGuiWindow* window = ImGui::FindWindowByName("Verdict");
  EXPECT_EQ(due->from.x, window->Pos.x);
  EXPECT_EQ(due->to.y, window->Pos.y + window->Size.y);
  EXPECT_FALSE(ImGui::FindWindowByName("Actions")->Active);
  EXPECT_FALSE(driver.ui().picture_due()) << "once";
  driver.ui().picture_taken(due->path, {});
  EXPECT_EQ(driver.ui().state().message, "Saved " + (fs::current_path() / due->path).string());
  driver.ui().picture_taken(due->path, Error{ErrorCode::io, "the disk is full", ""});
  EXPECT_EQ(driver.ui().state().message, "the disk is full");
}

TEST_F(Everywhere, APictureMayBeNamedButNotInsideTheRun) {
  Driver driver(session(), Panel::norms);
  driver.frame(3);
  const auto name = [&](const std::string& path) {
    driver.press(ImGuiKey_S, ImGuiMod_Ctrl);  // without a name: replaced by the one below
    ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, true);
    driver.press(ImGuiKey_S, ImGuiMod_Ctrl);
    ImGui::GetIO().AddKeyEvent(ImGuiMod_Shift, false);
    driver.frame(2);
    driver.type(path.c_str());
    driver.press(ImGuiKey_Enter);
    std::optional<PictureSaver::Due> due;
    for (int i = 0; i < 5 && !due; ++i) {
      driver.frame();
      due = driver.ui().picture_due();
    }
    return due ? due->path : "";
  };
  EXPECT_EQ(name(temp_.path() + "/curves"), temp_.path() + "/curves.png");
  EXPECT_NE(name(dir() + "/incidents/curves.png"), dir() + "/incidents/curves.png");
  EXPECT_TRUE(says(driver.ui().state().message, "nothing is written into a run"))
      << driver.ui().state().message;
  EXPECT_FALSE(may_write(session(), dir() + "/../story/a.png"));
  EXPECT_TRUE(may_write(session(), dir() + "2/a.png"));
  const Session snapshot = open(snapshot_);
  EXPECT_FALSE(may_write(snapshot, dir() + "/incidents/a.png"));
  EXPECT_FALSE(may_write(snapshot, dir() + "/a.png")) << "it lies in a run";
  fs::copy_file(snapshot_, temp_.path() + "/taken.h5");
  const Session taken = open(temp_.path() + "/taken.h5");
  EXPECT_TRUE(may_write(taken, temp_.path() + "/a.png")) << "it was taken out of its run";
  EXPECT_FALSE(may_write(taken, temp_.path() + "/./taken.h5"));
}

TEST_F(Everywhere, APictureNeverReplacesOneThatIsThere) {
  const std::string folder = temp_.path();
  std::ofstream(picture_path(session(), Panel::tensor, folder)) << "one";
  EXPECT_EQ(picture_path(session(), Panel::tensor, folder), folder + "/story-step131-tensor-2.png");
  std::ofstream(picture_path(session(), Panel::tensor, folder)) << "two";
  EXPECT_EQ(picture_path(session(), Panel::tensor, folder), folder + "/story-step131-tensor-3.png");
}

}  // namespace
}  // namespace nanquest::viewer
