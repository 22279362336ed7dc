// How a run was left, and the notes on it: stored with the user's own files, never in the run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "probe/snapshot/atomic_file.h"
#include "tests/viewer/story.h"
#include "viewer/model/opening.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

namespace fs = std::filesystem;

class Desks : public testing::OpenStory {
 protected:
  std::string state() const { return temp_.path() + "/state"; }
  OwnFolders folders() const { return {temp_.path() + "/config", state()}; }
  Desk left() {
    Desk desk;
    desk.layout = "curves";
    desk.theme = "light";
    desk.front = {"timeline", "norms"};
    desk.steps = {20.5, 80};
    desk.first = shown_incident(session());
    session().select_op(30);
    session().select_tensor("parameters/head.weight");
    session().select_element(7);
    session().select_what_if({Format::bf16, -3});
    session().select_statistic(Statistic::weight);
    desk.shown = shown_incident(session());
    desk.selection = session().selection();
    desk.selection->incident = -1;
    desk.notes = {{"cut off?\n\"yes\"", {131}, Link::to_op(55)},
                  {"steep", {}, Link::to_layer("head", Statistic::gradient)},
                  {"", {90, 2, 3}, Link::to_sample(3, "batch/tokens")}};
    return desk;
  }
  /// Every file of the run with its bytes.
  std::map<std::string, std::string> files() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(dir()))
      if (entry.is_regular_file()) all[entry.path().string()] = *read_whole_file(entry.path().string());
    return all;
  }
};

TEST_F(Desks, WhatIsKeptComesBack) {
  const Desk desk = left();
  const auto before = files();
  ASSERT_TRUE(write_desk(state(), session(), desk));
  EXPECT_EQ(before, files()) << "the run was written into";
  const Result<Desk> again = read_desk(state(), dir() + "/../story/");
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, desk);
  EXPECT_EQ(*read_desk(state(), temp_.path() + "/elsewhere/story"), Desk{}) << "a run of the same name";
}

TEST_F(Desks, ARunOpensAsItWasLeft) {
  const Desk desk = left();
  ASSERT_TRUE(write_desk(state(), session(), desk));
  const Result<Opening> opened = open_as_left(dir(), folders());
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_TRUE(opened->resumed);
  EXPECT_EQ(opened->session.selection(), session().selection());
  EXPECT_EQ(opened->session.notes(), desk.notes);
  EXPECT_EQ(opened->trouble, "");
}

TEST_F(Desks, WhatIsNewComesBeforeWhatWasLookedAt) {
  Desk desk = left();
  desk.first = {90, 0, 1};  // then it was step 90 that the run opened with
  ASSERT_TRUE(write_desk(state(), session(), desk));
  const Result<Opening> opened = open_as_left(dir(), folders());
  ASSERT_TRUE(opened);
  EXPECT_FALSE(opened->resumed);
  EXPECT_EQ(opened->session.selection(), open(dir()).selection());
  EXPECT_EQ(opened->desk.first, (IncidentName{131, 0, 1}));
  EXPECT_EQ(opened->session.notes().size(), 3u) << "notes stay";
}

TEST_F(Desks, AnIncidentThatIsGoneIsNotMissed) {
  Desk desk = left();
  desk.shown = {77, 0, 1};
  ASSERT_TRUE(write_desk(state(), session(), desk));
  const Result<Opening> opened = open_as_left(dir(), folders());
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->session.selection(), open(dir()).selection());
}

TEST_F(Desks, WhatNobodyCanReadIsSaidAndNotWrittenOver) {
  const std::string path = desk_path(state(), dir());
  const std::string bad[] = {
      "",
      "{",
      "[]",
      "null",
      "{\"format\": \"other\", \"version\": 1}",
      "{\"format\": \"nanquest.desk\", \"version\": 2}",
      "{\"format\": \"nanquest.desk\", \"version\": 1, \"notes\": 3}",
      "{\"format\": \"nanquest.desk\", \"version\": 1, \"selection\": {\"op\": 1e300}}"};
  for (const std::string& text : bad) {
    ASSERT_TRUE(write_file_atomically(path, text));
    const Result<Opening> opened = open_as_left(dir(), folders());
    ASSERT_TRUE(opened) << text;
    EXPECT_TRUE(says(opened->trouble, path) && says(opened->trouble, "move it away")) << opened->trouble;
    EXPECT_EQ(opened->session.selection(), open(dir()).selection());
    ASSERT_TRUE(write_desk(state(), opened->session, opened->desk));
    EXPECT_EQ(*read_whole_file(path), text) << "somebody may still read it";
  }
}

TEST_F(Desks, NumbersThatNoRunHasSelectNothingBad) {
  const std::string path = desk_path(state(), dir());
  ASSERT_TRUE(write_file_atomically(
      path,
      "{\"format\": \"nanquest.desk\", \"version\": 1, \"steps\": [9, 2], \"first\": {\"step\": 131}, "
      "\"shown\": {\"step\": 131}, \"selection\": {\"op\": -9, \"element\": -7, \"sample\": 99999, "
      "\"tensor\": \"none\", \"layer\": \"none\", \"statistic\": \"none\", \"what_if\": \"fp3\"}, "
      "\"notes\": [{\"text\": \"a\", \"kind\": \"galaxy\"}], \"later\": {}}"));
  const Result<Opening> opened = open_as_left(dir(), folders());
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->trouble, "");
  EXPECT_FALSE(opened->desk.steps);
  Session shown = opened->session;
  EXPECT_TRUE(shown.has_layer(shown.selection().layer) || shown.selection().layer.empty());
  EXPECT_TRUE(shown.incident()->holds(shown.selection().tensor));
  for (const PanelInfo& panel : all_panels()) EXPECT_FALSE(panel_text(shown, panel.panel).empty());
}

TEST_F(Desks, NothingIsKeptInARunOrNowhere) {
  EXPECT_TRUE(write_desk("", session(), left()));
  const auto before = files();
  const Status kept = write_desk(dir() + "/own", session(), left());
  ASSERT_FALSE(kept);
  EXPECT_TRUE(says(kept.error().text(), "nothing is written into a run")) << kept.error().text();
  EXPECT_FALSE(write_desk("/proc/none", session(), left()));
  EXPECT_EQ(before, files());
}

TEST_F(Desks, StandWhereTheUserKeepsState) {
  const char* before = std::getenv("XDG_STATE_HOME");
  const std::string was = before == nullptr ? "" : before;
  setenv("XDG_STATE_HOME", "/own/state", 1);
  EXPECT_EQ(state_folder(), "/own/state/nanquest");
  setenv("XDG_STATE_HOME", "", 1);
  EXPECT_TRUE(state_folder().empty() || state_folder().ends_with("/.local/state/nanquest"));
  if (before != nullptr)
    setenv("XDG_STATE_HOME", was.c_str(), 1);
  else
    unsetenv("XDG_STATE_HOME");
}

TEST_F(Desks, NotesStandInTheTextOfTheRun) {
  session().set_notes({{"cut off?", {131}, Link::to_op(55)}});
  EXPECT_TRUE(says(panel_text(session(), Panel::runs), "step 131, op 55"))
      << panel_text(session(), Panel::runs);
  EXPECT_TRUE(says(panel_text(session(), Panel::runs), "cut off?"));
}

}  // namespace
}  // namespace nanquest::viewer
