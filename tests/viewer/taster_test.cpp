// Files that are read by a child process first: what brings that down is a sentence.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "probe/snapshot/atomic_file.h"
#include "tests/viewer/story.h"
#include "viewer/model/taster.h"
#include "viewer/panels/registry.h"

namespace nanquest::viewer {
namespace {

std::string why(const Status& status) {
  return status ? "" : status.error().text();
}

TEST(RunApart, SaysHowAProgramEnded) {
  const auto shell = [](const std::string& what, ChildLimits limits = {}) {
    return run_apart({"/bin/sh", "-c", what}, limits);
  };
  EXPECT_EQ(why(shell("exit 0")), "");
  EXPECT_EQ(why(shell("exit 3")), "") << "whoever reads the file next says what is wrong with it";
  EXPECT_NE(why(shell("kill -SEGV $$")).find("crashed on it (signal 11)"), std::string::npos);
  EXPECT_NE(why(shell("kill -ABRT $$")).find("(signal 6)"), std::string::npos);
  EXPECT_NE(why(shell("exec sleep 100000", {.seconds = 0.2})).find("did not end within its time"),
            std::string::npos);
  EXPECT_NE(why(run_apart({"/no/such/program"}, {})).find("cannot be run"), std::string::npos);
}

TEST(RunApart, NothingIsWrittenAndNoMoreMemoryThanAllowed) {
  const testing::TempDir temp;
  const std::string file = temp.path() + "/written";
  EXPECT_NE(why(run_apart({"/bin/sh", "-c", "exec dd if=/dev/zero of=" + file + " bs=1024 count=1"}, {})),
            "");
  EXPECT_TRUE(!std::filesystem::exists(file) || std::filesystem::file_size(file) == 0);
}

class Tasted : public testing::OpenStory {
 protected:
  void TearDown() override { taste_with({}); }
  static Error crash(const std::string& path) {
    return {ErrorCode::bad_file, path + ": the reader crashed on it (signal 11)", "it is not opened"};
  }
};

TEST_F(Tasted, ASnapshotThatIsNotOpenedIsASentenceAndTheRestIsShown) {
  taste_with([&](Taste as, const std::string& path) {
    return as == Taste::snapshot && path == snapshot_ ? Status(crash(path)) : Status();
  });
  Session session = open(dir());
  EXPECT_TRUE(says(session.incident_error(), "the reader crashed on it")) << session.incident_error();
  EXPECT_TRUE(says(panel_text(session, Panel::verdict), "FP16_OVERFLOW")) << "its verdict is another file";
  EXPECT_FALSE(session.history().empty());
  session.select_step(90);
  EXPECT_NE(session.incident(), nullptr);
  EXPECT_FALSE(Session::open(snapshot_).ok() && open(snapshot_).incident() != nullptr);
}

TEST_F(Tasted, ASeriesThatIsNotOpenedIsASentence) {
  taste_with([&](Taste as, const std::string& path) {
    return as == Taste::series ? Status(crash(path)) : Status();
  });
  const Session session = open(dir());
  EXPECT_TRUE(says(session.series_error(), "the reader crashed on it"));
  EXPECT_NE(session.incident(), nullptr);
}

TEST_F(Tasted, EachFileOnceAsLongAsItStaysAsItIs) {
  const std::string count = temp_.path() + "/count", script = temp_.path() + "/child";
  // Files can't be written by it; directories can be made.
  ASSERT_TRUE(write_file_atomically(script, "#!/bin/sh\nmkdir -p " + count + " && mkdir " + count + "/$$\n"));
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const auto times = [&] {
    std::size_t all = 0;
    if (std::filesystem::exists(count))
      for (const auto& entry : std::filesystem::directory_iterator(count)) all += entry.exists();
    return all;
  };
  const Taster taster = child_taster(script, {});
  EXPECT_TRUE(taster(Taste::snapshot, snapshot_));
  EXPECT_TRUE(taster(Taste::snapshot, snapshot_));
  EXPECT_EQ(times(), 1u);
  std::filesystem::last_write_time(snapshot_,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_TRUE(taster(Taste::snapshot, snapshot_));
  EXPECT_EQ(times(), 2u);
}

TEST_F(Tasted, AChildReadsWhatAWindowMayRead) {
  taste(Taste::snapshot, snapshot_);
  taste(Taste::series, series_path(dir(), 0));
  taste(Taste::ranges, dir() + "/none");
  taste(Taste::snapshot, dir() + "/manifest.json");
}

}  // namespace
}  // namespace nanquest::viewer
