// A run directory that fails, callbacks that throw: the training goes on unchanged.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>

#include "probe/base/check.h"
#include "tests/guard/guarded_training.h"

namespace nanquest::guard::testing {
namespace {

/// Trains 12 batches with a poisoned one in the middle; gives the report of the bad step.
StepReport train_over_a_bad_batch(GuardedTraining& guarded, const std::vector<Batch>& all) {
  StepReport bad_report;
  std::int64_t step = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 6) {
      Batch bad{all[0].x.clone(), all[0].y, {"poisoned"}};
      bad.x[0][0] = std::numeric_limits<float>::infinity();
      bad_report = guarded.step(step++, bad);
    }
    EXPECT_TRUE(guarded.step(step++, all[i]).ok());
  }
  return bad_report;
}

/// While it lives no file of this process can grow beyond `bytes`: writes fail as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit now{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &now);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = SIG_DFL;
};

class Trouble : public ::testing::Test {
 protected:
  void SetUp() override {
    train_without_probe(never_, all_);
    expected_ = never_.state();
  }
  const std::vector<Batch> all_ = batches(12);
  TinyTraining never_;
  std::vector<std::pair<std::string, at::Tensor>> expected_;
};

TEST_F(Trouble, a_directory_that_cannot_be_made_is_one_line) {
  const ScratchDirectory scratch;
  std::ofstream(scratch.path + "/file") << "not a directory";
  for (const std::string& place : {scratch.path + "/file/run", std::string("/proc/run")}) {
    const Result<std::unique_ptr<Probe>> probe = Probe::create({.run_dir = place});
    ASSERT_FALSE(probe);
    EXPECT_EQ(probe.error().code, ErrorCode::io);
    EXPECT_NE(probe.error().message.find(place), std::string::npos);
    EXPECT_EQ(probe.error().text().find('\n'), std::string::npos);
  }
}

TEST_F(Trouble, snapshots_that_cannot_be_written_disturb_nothing) {
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  std::filesystem::remove(scratch.path + "/run/incidents");
  std::ofstream(scratch.path + "/run/incidents") << "in the way";
  const StepReport report = train_over_a_bad_batch(guarded, all_);
  EXPECT_EQ(report.gate, Gate::non_finite);
  EXPECT_EQ(report.incident, "");
  EXPECT_NE(report.summary.find("snapshot not written"), std::string::npos) << report.summary;
  EXPECT_EQ(report.summary.find('\n'), std::string::npos);
  EXPECT_EQ(first_difference(guarded.net.state(), expected_), "");
}

TEST_F(Trouble, a_full_disk_disturbs_nothing_and_leaves_nothing_half_written) {
  for (const rlim_t bytes : {rlim_t{0}, rlim_t{20000}}) {
    const ScratchDirectory scratch;
    GuardedTraining guarded({.run_dir = scratch.path + "/run"});
    StepReport report;
    {
      const FullDisk full(bytes);
      report = train_over_a_bad_batch(guarded, all_);
      (void)guarded.probe->finish("disk full");
      guarded.probe.reset();
    }
    EXPECT_EQ(report.gate, Gate::non_finite);
    EXPECT_EQ(report.incident, "");
    EXPECT_EQ(first_difference(guarded.net.state(), expected_), "");
    for (const auto& left : std::filesystem::directory_iterator(scratch.path + "/run/incidents"))
      ADD_FAILURE() << left.path() << " of " << left.file_size() << " bytes is left, limit " << bytes;
  }
}

TEST_F(Trouble, a_run_directory_that_vanishes_disturbs_nothing) {
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  ASSERT_TRUE(std::filesystem::exists(scratch.path + "/run/manifest.json"));
  std::filesystem::remove_all(scratch.path);
  train_over_a_bad_batch(guarded, all_);
  EXPECT_EQ(first_difference(guarded.net.state(), expected_), "");
}

/// Trains with a probe that gets the exception of `fail` before the third step: it switches itself off,
/// reports it once, and the training ends as without it. Returns what was reported.
std::string told_of(const std::function<void()>& fail, const std::vector<Batch>& all,
                    const std::vector<std::pair<std::string, at::Tensor>>& expected) {
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run"});
  int calls = 0;
  guarded.probe->watch_undo([&]() -> std::function<void()> {
    if (++calls == 3) fail();
    return [] {};
  });
  std::string told;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const StepReport report = guarded.step(static_cast<std::int64_t>(i), all[i]);
    EXPECT_TRUE(report.ok());
    if (!report.summary.empty()) {
      EXPECT_EQ(told, "") << "told twice";
      told = report.summary;
    }
  }
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(first_difference(guarded.net.state(), expected), "");
  EXPECT_NE(told.find("nanquest is off"), std::string::npos) << told;
  EXPECT_EQ(told.find('\n'), std::string::npos) << told;
  const Status ended = guarded.probe->finish("finished");
  EXPECT_FALSE(ended);
  EXPECT_EQ(ended.ok() ? "" : ended.error().message, told);
  return told;
}

TEST_F(Trouble, a_callback_that_throws_switches_the_probe_off_with_one_line) {
  const std::string told =
      told_of([] { throw std::runtime_error("cannot save\nthe state"); }, all_, expected_);
  EXPECT_NE(told.find("cannot save"), std::string::npos) << told;
}

TEST_F(Trouble, a_failed_check_switches_the_probe_off_and_says_where) {
  const std::string told = told_of([] { NANQUEST_CHECK(2 < 1, "row of a table"); }, all_, expected_);
  EXPECT_NE(told.find("check failed: 2 < 1 (row of a table), guard/trouble_test.cpp:"), std::string::npos)
      << told;
}

TEST_F(Trouble, off_gates_and_undoes_and_writes_nothing) {
  const ScratchDirectory scratch;
  GuardedTraining guarded({.run_dir = scratch.path + "/run", .level = Level::off});
  for (std::size_t i = 0; i < all_.size(); ++i)
    ASSERT_TRUE(guarded.step(static_cast<std::int64_t>(i), all_[i]).ok());
  EXPECT_EQ(first_difference(guarded.net.state(), expected_), "");
  Batch bad{all_[0].x.clone(), all_[0].y, {}};
  bad.x[0][0] = std::numeric_limits<float>::quiet_NaN();
  const StepReport report = guarded.step(12, bad);
  EXPECT_EQ(report.gate, Gate::non_finite);
  EXPECT_EQ(report.incident, "");
  EXPECT_EQ(first_difference(guarded.net.state(), expected_), "") << "the bad step was not undone";
  EXPECT_TRUE(guarded.probe->finish("done"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path + "/run"));
}

}  // namespace
}  // namespace nanquest::guard::testing
