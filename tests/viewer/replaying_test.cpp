// nanquest-replay as a child process: its progress, its results, its failures, and its end.
#include "viewer/model/replaying.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "probe/snapshot/run_dir.h"
#include "tests/viewer/program_named.h"
#include "tests/viewer/story.h"

namespace nanquest::viewer {
namespace {

using testing::comes;
using testing::ReplayScript;

class ReplayChild : public testing::Story {
 protected:
  std::string file(const std::string& name) const { return temp_.path() + "/" + name; }
  std::string text_of(const std::string& name) const {
    const Result<std::string> text = read_whole_file(file(name));
    return text ? *text : "";
  }
  bool ends() {
    return comes([&] {
      replaying_.look();
      return !replaying_.runs();
    });
  }
  std::string start(ReplayTask task = ReplayTask::replay) {
    const Status started = replaying_.start(task, file("step 1.h5"), "step 1");
    return started ? "" : started.error().text();
  }
  /// True once the process whose number a script wrote is gone.
  bool is_gone(const std::string& name) {
    return comes([&] {
      const std::string number = text_of(name);
      return !number.empty() && kill(static_cast<pid_t>(std::stol(number)), 0) != 0;
    });
  }
  Replaying replaying_;
};

TEST_F(ReplayChild, TellsItsProgressAndItsEnd) {
  const ReplayScript script("echo \"$#:$1\" > " + file("words") + "\necho verifying >&2\nuntil [ -e " +
                            file("go") + " ]; do sleep 0.01; done\necho the verdict\nexit 1");
  ASSERT_EQ(start(), "");
  EXPECT_TRUE(replaying_.runs());
  EXPECT_TRUE(says(start(), "cancel it first")) << "one at a time";
  EXPECT_TRUE(comes([&] { return replaying_.look() && says(replaying_.doing(), ": verifying"); }));
  EXPECT_TRUE(replaying_.doing().starts_with("replaying step 1, ")) << replaying_.doing();
  EXPECT_FALSE(replaying_.take_ended());
  std::ofstream(file("go")) << "\n";
  ASSERT_TRUE(ends());
  EXPECT_TRUE(replaying_.take_ended());
  EXPECT_FALSE(replaying_.take_ended()) << "once";
  EXPECT_EQ(replaying_.doing(), "");
  EXPECT_FALSE(replaying_.failed()) << "a finding is no failure";
  EXPECT_TRUE(replaying_.outcome().starts_with("step 1 was replayed in ")) << replaying_.outcome();
  EXPECT_EQ(text_of("words"), "1:" + file("step 1.h5") + "\n") << "one word, and no shell that cuts it";
  EXPECT_TRUE(replaying_.is_of(file("step 1.h5")));
  EXPECT_FALSE(replaying_.is_of(file("step 2.h5")));
}

TEST_F(ReplayChild, SubCommandsPrintWhatCameOut) {
  const ReplayScript script("echo \"$1 came out\"\necho more");
  ASSERT_EQ(start(ReplayTask::rewind), "");
  ASSERT_TRUE(ends());
  EXPECT_TRUE(says(replaying_.outcome(), " s: rewind came out")) << replaying_.outcome();
  ASSERT_EQ(start(ReplayTask::repro), "");
  ASSERT_TRUE(ends());
  EXPECT_TRUE(says(replaying_.outcome(), " s: repro came out, more")) << replaying_.outcome();
}

TEST_F(ReplayChild, AFailureGivesItsReasonAndTheCommand) {
  const ReplayScript script(
      "echo loading >&2\necho 'nanquest-replay: step 1.h5: cut off (copy it again)' >&2\nexit 3");
  ASSERT_EQ(start(), "");
  ASSERT_TRUE(ends());
  EXPECT_TRUE(replaying_.failed());
  EXPECT_TRUE(replaying_.outcome().starts_with("step 1.h5: cut off (copy it again)\n"))
      << replaying_.outcome();
  EXPECT_TRUE(says(replaying_.outcome(), "in a terminal: nanquest-replay '" + file("step 1.h5") + "'"));
}

TEST_F(ReplayChild, WithoutAWordItsCodeOrItsSignalIsNamed) {
  {
    const ReplayScript script("exit 70");
    ASSERT_EQ(start(), "");
    ASSERT_TRUE(ends());
    EXPECT_TRUE(says(replaying_.outcome(), "ended with code 70 and gave no reason")) << replaying_.outcome();
  }
  const ReplayScript script("kill -KILL $$");
  ASSERT_EQ(start(), "");
  ASSERT_TRUE(ends());
  EXPECT_TRUE(replaying_.failed());
  EXPECT_TRUE(says(replaying_.outcome(), "was ended by signal 9 (Killed)")) << replaying_.outcome();
}

TEST_F(ReplayChild, AWarningOfARunThatEndedIsKept) {
  const ReplayScript script("echo 'nanquest-replay: warning: step.json: read-only' >&2");
  ASSERT_EQ(start(), "");
  ASSERT_TRUE(ends());
  EXPECT_TRUE(replaying_.failed()) << "no file came of it";
  EXPECT_TRUE(says(replaying_.outcome(), "warning: step.json: read-only")) << replaying_.outcome();
}

TEST_F(ReplayChild, IsNotThere) {
  const ReplayScript none("");
  const std::string why = start(ReplayTask::rewind);
  EXPECT_TRUE(says(why, "nanquest-replay is neither in the folder NANQUEST_BIN")) << why;
  EXPECT_TRUE(says(why, "run where it is: nanquest-replay rewind '" + file("step 1.h5") + "'")) << why;
  EXPECT_FALSE(replaying_.runs());
  EXPECT_TRUE(replaying_.failed());
  EXPECT_EQ(replaying_.outcome(), why);
}

TEST_F(ReplayChild, IsCancelledEvenIfItWouldGoOn) {
  for (const char* how : {"", "trap '' TERM"}) {
    const ReplayScript script(std::string(how) + "\necho $$ > " + file("number") +
                              "\nwhile :; do sleep 0.02; done");
    ASSERT_EQ(start(), "");
    ASSERT_TRUE(comes([&] { return !text_of("number").empty(); }));
    replaying_.cancel();
    ASSERT_TRUE(ends()) << how;
    EXPECT_TRUE(is_gone("number")) << how;
    EXPECT_FALSE(replaying_.failed());
    EXPECT_TRUE(replaying_.take_ended());
    EXPECT_TRUE(says(replaying_.outcome(), "replaying step 1 was cancelled after ")) << replaying_.outcome();
    std::filesystem::remove(file("number"));
  }
}

TEST_F(ReplayChild, EndsWithItsOwner) {
  const ReplayScript script("echo $$ > " + file("number") + "\nexec sleep 1000");
  {
    Replaying replaying;
    ASSERT_TRUE(replaying.start(ReplayTask::replay, file("a.h5"), "step 1"));
    ASSERT_TRUE(comes([&] { return !text_of("number").empty(); }));
  }
  EXPECT_TRUE(is_gone("number"));
}

/// A window that is killed runs no destructor.
TEST_F(ReplayChild, EndsWithAProgramThatIsKilled) {
  const ReplayScript script("echo $$ > " + file("number") + "\nexec sleep 1000");
  const pid_t window = fork();
  ASSERT_GE(window, 0);
  if (window == 0) {
    Replaying replaying;
    (void)replaying.start(ReplayTask::replay, file("a.h5"), "step 1");
    (void)comes([&] { return !text_of("number").empty(); });
    (void)raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(window, &status, 0), window);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(is_gone("number"));
}

TEST_F(ReplayChild, OneThatPrintsWithoutEndHoldsNothingUp) {
  Result<std::unique_ptr<Child>> child = Child::start({"/bin/sh", "-c", "exec yes"});
  ASSERT_TRUE(child);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(comes([&] { return (*child)->look(); }));
  EXPECT_FALSE((*child)->ended());
  EXPECT_GT((*child)->printed().size(), 0u);
  EXPECT_LE((*child)->printed().size(), std::size_t{64} << 10);
}

/// Replay writes the verdict first, and the values in fp32 and fp64 when it has run the step twice more.
TEST_F(ReplayChild, AReplayFileThatComesAfterTheVerdictIsRead) {
  for (const bool run : {true, false}) {
    const std::string dir = this->dir() + (run ? "1" : "2");
    const std::string snapshot =
        testing::write_run(dir, {.watched = false, .series = false, .manifest = run});
    const std::string kept = file("kept.h5");
    std::filesystem::rename(replay_path(snapshot), kept);
    Session session = open(run ? dir : snapshot);
    ASSERT_TRUE(session.verdict());
    EXPECT_FALSE(session.incident()->replay_error.empty());
    EXPECT_FALSE(session.poll());
    std::filesystem::rename(kept, replay_path(snapshot));
    EXPECT_TRUE(session.poll());
    EXPECT_EQ(session.incident()->replay_error, "");
    EXPECT_TRUE(session.incident()->replay.has_value());
  }
}

TEST_F(ReplayChild, IsOfferedWhereItShowsMore) {
  (void)testing::write_run(dir(), {.replayed = false});
  EXPECT_TRUE(wants_replay(open(dir())));
  std::filesystem::remove_all(dir());
  std::filesystem::remove(testing::write_run(dir()));
  EXPECT_FALSE(may_replay(open(dir()))) << "its snapshot is gone";
}

}  // namespace
}  // namespace nanquest::viewer
