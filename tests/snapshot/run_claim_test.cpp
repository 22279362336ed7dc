// One run per directory: files of an earlier run are moved, files of a running one are not touched.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "probe/snapshot/atomic_file.h"
#include "probe/snapshot/manifest.h"
#include "probe/snapshot/run_claim.h"
#include "probe/snapshot/run_dir.h"
#include "tests/snapshot/rich_doc.h"

namespace nanquest {
namespace {

namespace fs = std::filesystem;
using testing::TempDir;

class Claim : public ::testing::Test {
 protected:
  /// The files of a finished run, and a file of the user.
  void leave_a_run() {
    Manifest manifest;
    manifest.created = "2026-01-02T03:04:05Z";
    ASSERT_TRUE(write_manifest(run_, manifest));
    for (const char* name : {"series.r0.h5", "series.r1.h5", "incidents/step-00000007.r0.h5",
                             "incidents/step-00000007.r0.json", "recordings/step-00000005.r0.h5",
                             "checkpoints/final.safetensors", "metrics.jsonl", "metrics.csv", "notes.txt"})
      ASSERT_TRUE(write_file_atomically(run_ + "/" + name, name));
  }
  std::size_t left_in_run() const {
    std::size_t n = 0;
    for (const auto& entry : fs::directory_iterator(run_)) n += entry.path().filename().string()[0] != '.';
    return n;
  }

  TempDir dir_;
  std::string run_ = dir_ / "run";
  std::string earlier_ = run_ + "/earlier/20260102T030405Z";
};

TEST_F(Claim, AFreshDirectoryIsMade) {
  const Result<RunClaim> claim = RunClaim::take(run_, 0, false);
  ASSERT_TRUE(claim) << claim.error().text();
  EXPECT_EQ(claim->earlier(), "");
  EXPECT_EQ(claim->earlier_text(), "");
  EXPECT_TRUE(fs::is_directory(incidents_dir(run_)));
}

TEST_F(Claim, AnEarlierRunIsMovedWholeAndCanBeListed) {
  leave_a_run();
  const Result<RunClaim> claim = RunClaim::take(run_, 0, false);
  ASSERT_TRUE(claim) << claim.error().text();
  EXPECT_EQ(claim->earlier(), earlier_);
  EXPECT_EQ(claim->earlier_text(), "the run that was in " + run_ + " is now in " + earlier_);
  EXPECT_TRUE(fs::exists(run_ + "/notes.txt"));
  EXPECT_EQ(left_in_run(), 3u);  // notes, earlier, incidents
  const Result<RunListing> listing = list_run(earlier_);
  ASSERT_TRUE(listing) << listing.error().text();
  EXPECT_EQ(listing->series.size(), 2u);
  ASSERT_EQ(listing->incidents.size(), 1u);
  EXPECT_NE(listing->incidents[0].verdict, "");
  EXPECT_TRUE(fs::exists(recordings_dir(earlier_) + "/step-00000005.r0.h5"));
  for (const char* metrics : {"metrics.jsonl", "metrics.csv"})
    EXPECT_EQ(*read_whole_file(earlier_ + "/" + metrics), metrics);
  EXPECT_EQ(*read_whole_file(earlier_ + "/checkpoints/final.safetensors"), "checkpoints/final.safetensors");
}

TEST_F(Claim, TwoEarlierRunsOfOneSecondHavePlacesOfTheirOwn) {
  for (const char* place : {"", "-2", "-3"}) {
    leave_a_run();
    const Result<RunClaim> claim = RunClaim::take(run_, 0, false);
    ASSERT_TRUE(claim) << claim.error().text();
    EXPECT_EQ(claim->earlier(), earlier_ + place);
  }
}

TEST_F(Claim, ResumeAndOtherRanksKeepWhatIsThere) {
  leave_a_run();
  const std::size_t before = left_in_run();
  EXPECT_TRUE(RunClaim::take(run_, 0, true));
  EXPECT_TRUE(RunClaim::take(run_, 1, false));
  EXPECT_EQ(left_in_run(), before);
}

TEST_F(Claim, ALivingProcessIsNotDisturbed) {
  leave_a_run();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t other = fork();
  if (other == 0) {
    const bool ok =
        RunClaim::take(run_, 0, true).ok();  // the process ends at once: its lock must be released
    const Result<RunClaim> kept = RunClaim::take(run_, 1, true);
    const char answer = ok && kept.ok() ? '+' : '-';
    if (write(ready[1], &answer, 1) == 1) pause();
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, '+');
  const Result<RunClaim> taken = RunClaim::take(run_, 1, true);
  ASSERT_FALSE(taken);
  EXPECT_EQ(exit_code(taken.error().code), 2);
  EXPECT_NE(taken.error().message.find(run_ + ": process " + std::to_string(other)), std::string::npos)
      << taken.error().text();
  EXPECT_EQ(taken.error().text().find('\n'), std::string::npos);
  // Rank 0 starts again while rank 1 is already running: rank 1's series stays where it is.
  EXPECT_TRUE(RunClaim::take(run_, 0, false));
  EXPECT_TRUE(fs::exists(series_path(run_, 1)));
  EXPECT_FALSE(fs::exists(series_path(run_, 0)));
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  EXPECT_TRUE(RunClaim::take(run_, 1, true)) << "a killed process holds nothing";
  close(ready[0]);
  close(ready[1]);
}

TEST_F(Claim, PlacesThatCannotBeAreNamed) {
  std::ofstream(dir_ / "file") << "x";
  for (const std::string& place : {dir_ / "file", dir_ / "file/run", std::string("/proc/run")}) {
    const Result<RunClaim> claim = RunClaim::take(place, 0, false);
    ASSERT_FALSE(claim) << place;
    EXPECT_EQ(claim.error().code, ErrorCode::io);
    EXPECT_NE(claim.error().message.find(place), std::string::npos);
    EXPECT_EQ(claim.error().text().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace nanquest
