// Which files are removed for a new one, as probe/step/file_budget.h promises, with files of chosen sizes.
#include "probe/step/file_budget.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "probe/snapshot/run_dir.h"

namespace nanquest {
namespace {

using Kind = FileBudget::Kind;

class FileBudgetTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("nanquest-budget-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, std::size_t bytes) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << std::string(bytes, 'x');
    return path;
  }

  std::filesystem::path folder_;
};

TEST_F(FileBudgetTest, WithoutABoundNothingGoes) {
  FileBudget budget(0);
  budget.wrote(write("a.h5", 100), Kind::incident);
  EXPECT_TRUE(budget.to_go(1 << 30).value().empty());
  EXPECT_FALSE(budget.over());
}

TEST_F(FileBudgetTest, WakeGoesFirstAndTheFirstIncidentNever) {
  FileBudget budget(1000);
  const std::string asked = write("asked.h5", 200), first = write("first.h5", 200),
                    second = write("second.h5", 200), wake = write("wake.h5", 200),
                    later = write("later.h5", 100);
  budget.wrote(asked, Kind::recording);
  budget.wrote(first, Kind::incident);
  budget.wrote(second, Kind::incident);
  budget.wrote(wake, Kind::wake);
  budget.wrote(later, Kind::wake);
  EXPECT_EQ(budget.used(), 900u);
  using Paths = std::vector<std::string>;
  EXPECT_EQ(budget.to_go(100).value(), Paths{});
  EXPECT_EQ(budget.to_go(101).value(), (Paths{wake}));
  EXPECT_EQ(budget.to_go(350).value(), (Paths{wake, later}));
  EXPECT_EQ(budget.to_go(600).value(), (Paths{wake, later, asked}));
  EXPECT_EQ(budget.to_go(800).value(), (Paths{wake, later, asked, second}));
  const auto too_much = budget.to_go(801);
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code, ErrorCode::io);
  EXPECT_EQ(budget.used(), 900u) << "asking removes nothing";
}

TEST_F(FileBudgetTest, WhatReplayMadeOfAFileCountsAndGoesWithIt) {
  FileBudget budget(1000);
  const std::string path = write("step-00000004.r0.h5", 300);
  write(std::filesystem::path(replay_path(path)).filename().string(), 200);
  const std::string verdict = write(std::filesystem::path(verdict_path(path)).filename().string(), 50);
  budget.wrote(path, Kind::wake);
  EXPECT_EQ(budget.used(), 500u);
  EXPECT_EQ(budget.remove(path), 500u);
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_FALSE(std::filesystem::exists(path) || std::filesystem::exists(replay_path(path)));
  EXPECT_TRUE(std::filesystem::exists(verdict));
  EXPECT_EQ(budget.remove(path), 0u) << "somebody else was there before";
}

}  // namespace
}  // namespace nanquest
