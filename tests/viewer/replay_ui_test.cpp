// A replay that is started from the window: by its buttons and from the list of actions.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "probe/snapshot/run_dir.h"
#include "tests/viewer/driver.h"
#include "tests/viewer/program_named.h"
#include "tests/viewer/story.h"

namespace nanquest::viewer {
namespace {

using testing::comes;
using testing::Driver;
using testing::ReplayScript;

class ReplayUi : public testing::Story {
 protected:
  void SetUp() override {
    snapshot_ = testing::write_run(dir(), {.replayed = false, .incidents = 2});
    session_.emplace(open(dir()));
    session_->select_step(testing::kBadStep);
    // What the real program leaves.
    std::ofstream(file("verdict.json")) << testing::fixture_verdict();
  }
  std::string file(const std::string& name) const { return temp_.path() + "/" + name; }
  /// Says what it does, waits to be let go, leaves a verdict.
  std::string leaves_a_verdict() const {
    return "echo verifying >&2\nuntil [ -e " + file("go") + " ]; do sleep 0.01; done\ncp " +
           file("verdict.json") + " " + verdict_path(snapshot_) + "\nexit 1";
  }
  void go() const { std::ofstream(file("go")) << "\n"; }
  std::string snapshot_;
  std::optional<Session> session_;
};

TEST_F(ReplayUi, TheButtonRunsItAndTheVerdictAppears) {
  const ReplayScript script(leaves_a_verdict());
  Loader loader;
  Driver driver(*session_, Panel::all, 1600, 1000, &loader);
  driver.frame(5);
  driver.read(loader);
  driver.frame(2);
  ASSERT_TRUE(driver.click("Replay now"));
  EXPECT_TRUE(driver.ui().waits());
  EXPECT_TRUE(comes([&] {
    driver.frame();
    return says(driver.ui().state().replaying.doing(), "replaying step 131, ") &&
           says(driver.ui().state().replaying.doing(), ": verifying");
  }));
  EXPECT_TRUE(driver.sees("Cancel"));
  EXPECT_FALSE(driver.sees("Replay now"));
  EXPECT_FALSE(session_->verdict());
  go();
  EXPECT_TRUE(comes([&] {
    driver.frame();
    return session_->verdict().has_value();
  }));
  driver.read(loader);
  driver.frame(2);
  EXPECT_FALSE(driver.sees("Cancel"));
  EXPECT_FALSE(driver.ui().waits());
  EXPECT_TRUE(says(driver.ui().state().message, "step 131 was replayed in ")) << driver.ui().state().message;
  EXPECT_EQ(session_->selection().step, testing::kBadStep);
  EXPECT_EQ(driver.bad_vertices(), 0);
}

TEST_F(ReplayUi, EachPanelAloneHasTheButton) {
  const ReplayScript script(leaves_a_verdict());
  for (const Panel panel : {Panel::verdict, Panel::trace}) {
    Driver driver(*session_, panel);
    driver.frame(3);
    ASSERT_TRUE(driver.click("Replay now")) << panel_name(panel);
    EXPECT_TRUE(driver.ui().state().replaying.runs());
  }
}

TEST_F(ReplayUi, TheListOfActionsStartsAndCancels) {
  const ReplayScript script("echo $1 >&2\nexec sleep 1000");
  Driver driver(*session_, Panel::all);
  driver.frame(5);
  EXPECT_FALSE(driver.ui().run_named("Cancel the replay"));
  EXPECT_FALSE(driver.ui().run_named("Rewind: run the steps before again")) << "this file has no tape";
  for (const char* name : {"Replay now", "Write a repro of the culprit"}) {
    driver.press(ImGuiKey_P, ImGuiMod_Ctrl);
    driver.frame(2);
    driver.type(name);
    driver.press(ImGuiKey_Enter);
    driver.frame(2);
    ASSERT_TRUE(driver.ui().state().replaying.runs()) << name;
    EXPECT_FALSE(driver.ui().run_named("Replay now")) << "one at a time";
    ASSERT_TRUE(driver.ui().run_named("Cancel the replay"));
    EXPECT_TRUE(comes([&] {
      driver.frame();
      return !driver.ui().state().replaying.runs();
    }));
    EXPECT_TRUE(says(driver.ui().state().message, "was cancelled after ")) << driver.ui().state().message;
  }
}

TEST_F(ReplayUi, TheButtonCancels) {
  const ReplayScript script("exec sleep 1000");
  Driver driver(*session_, Panel::verdict);
  driver.frame(3);
  ASSERT_TRUE(driver.click("Replay now"));
  driver.frame(2);
  ASSERT_TRUE(driver.click("Cancel"));
  EXPECT_TRUE(comes([&] {
    driver.frame();
    return driver.sees("Replay now");
  }));
}

TEST_F(ReplayUi, AFailureIsShownUntilTheNextRun) {
  const auto orange = [](const Driver& driver) {
    return driver.coloured(ImGui::GetColorU32(colour().orange));
  };
  std::optional<ReplayScript> script(std::in_place,
                                     "echo 'nanquest-replay: cut off (copy it again)' >&2\nexit 3");
  Driver driver(*session_, Panel::verdict);
  driver.frame(3);
  const int before = orange(driver);
  ASSERT_TRUE(driver.click("Replay now"));
  EXPECT_TRUE(comes([&] {
    driver.frame();
    return driver.ui().state().replaying.failed();
  }));
  driver.frame(2);
  EXPECT_GT(orange(driver), before);
  EXPECT_EQ(driver.ui().state().message, "cut off (copy it again)");
  EXPECT_TRUE(driver.sees("Replay now")) << "once more";
  script.reset();
  script.emplace("");
  ASSERT_TRUE(driver.click("Replay now"));
  driver.frame(2);
  EXPECT_TRUE(says(driver.ui().state().message, "is neither in the folder")) << driver.ui().state().message;
  EXPECT_GT(orange(driver), before);
}

TEST_F(ReplayUi, OnceEverythingIsKnownNothingIsOffered) {
  std::ofstream(verdict_path(snapshot_)) << testing::fixture_verdict();
  ASSERT_TRUE(session_->poll());
  Driver driver(*session_, Panel::verdict);
  driver.frame(3);
  EXPECT_TRUE(driver.sees("Replay now")) << "the values in fp32 and fp64 are missing";
  session_->restore({});
  driver.frame(3);
  EXPECT_FALSE(driver.sees("Replay now")) << "no incident is open";
}

}  // namespace
}  // namespace nanquest::viewer
