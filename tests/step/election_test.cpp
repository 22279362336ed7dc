// Which ranks write whole files of a bad step, as probe/step/election.h promises: ranks are threads here, and
// meet in a real directory.
#include "probe/step/election.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "probe/snapshot/run_dir.h"

namespace nanquest {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::int64_t kStep = 131;

class ElectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("nanquest-election-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Each rank holds its election in a thread of its own. Those that write whole files.
  std::set<int> whole(const std::vector<RankRow>& rows, ElectionOptions options = {},
                      milliseconds late = milliseconds(0)) {
    const int ranks = static_cast<int>(rows.size());
    std::vector<char> whole(rows.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] {
        const RankRow& row = rows[static_cast<std::size_t>(rank)];
        if (row.standing == Standing::made_here || row.standing == Standing::loss_bad)
          std::this_thread::sleep_for(late);
        Election election(folder_.string(), rank, ranks, options);
        whole[static_cast<std::size_t>(rank)] = election.hold(kStep, row).whole;
      });
    for (std::thread& thread : threads) thread.join();
    std::set<int> found;
    for (int rank = 0; rank < ranks; ++rank)
      if (whole[static_cast<std::size_t>(rank)]) found.insert(rank);
    return found;
  }
  static std::vector<RankRow> all(int ranks, Standing standing, std::int64_t collectives = 7) {
    std::vector<RankRow> rows(static_cast<std::size_t>(ranks));
    for (RankRow& row : rows)
      row = {.standing = standing, .collectives = collectives, .text = "aten::log made NaN"};
    return rows;
  }
  std::size_t rows_left() const {
    return rank_rows_beside(incident_path(folder_.string(), kStep, 0), 1 << 20).size();
  }

  fs::path folder_;
};

TEST_F(ElectionTest, OfFewRanksEachWritesItsFile) {
  EXPECT_EQ(whole(all(7, Standing::arrived)).size(), 7u);
  EXPECT_EQ(whole(all(9, Standing::made_here), {.from_ranks = 0}).size(), 9u);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(ElectionTest, TheFirstItsNeighboursAndOneFarAway) {
  auto rows = all(16, Standing::arrived);
  rows[0].standing = Standing::loss_bad;  // the ring closes
  EXPECT_EQ(whole(rows, {}, milliseconds(120)), (std::set<int>{0, 1, 8, 15}));
  EXPECT_EQ(rows_left(), 12u);
  const RankRow row = rank_rows_beside(incident_path(folder_.string(), kStep, 0), 64).at(5);
  EXPECT_EQ(row.first, 0);
  EXPECT_EQ(row.rank, 5);
  EXPECT_EQ(row.standing, Standing::arrived);
  EXPECT_EQ(row.text, "aten::log made NaN");
}

TEST_F(ElectionTest, WhereNobodyKnowsAllWrite) {
  EXPECT_EQ(whole(all(8, Standing::unknown), {.patience = milliseconds(100)}).size(), 8u);
  EXPECT_EQ(rows_left(), 0u);
}

TEST_F(ElectionTest, OfManyThatSayItIsTheirOwnOneIsFirstAndTheEarlierFaultIsKept) {
  auto rows = all(32, Standing::made_here, 9);
  rows[21].collectives = 2;
  const std::set<int> found = whole(rows);
  EXPECT_TRUE(found.count(21)) << "its fault came before all others'";
  EXPECT_GE(found.size(), 4u);
  EXPECT_LE(found.size(), 5u);
  EXPECT_EQ(rows_left() + found.size(), 32u);
}

TEST_F(ElectionTest, AStepThatIsRunAgainIsAnotherElection) {
  const int ranks = 8;
  auto rows = all(ranks, Standing::arrived);
  rows[1].standing = Standing::made_here;
  EXPECT_EQ(whole(rows), (std::set<int>{0, 1, 2, 5}));
  std::swap(rows[1], rows[6]);
  EXPECT_EQ(whole(rows, {.restart = 1}), (std::set<int>{2, 5, 6, 7}));
  Election election(folder_.string(), 6, ranks, {});
  EXPECT_FALSE(election.hold(kStep, all(1, Standing::made_here)[0]).whole)
      << "the first time rank 1 was first";
  EXPECT_TRUE(election.hold(kStep, all(1, Standing::made_here)[0]).whole) << "the second time nobody was yet";
}

TEST_F(ElectionTest, AFolderThatCannotBeWrittenAndAHalfWrittenClaim) {
  const auto own = all(1, Standing::made_here)[0], got = all(1, Standing::arrived)[0];
  std::ofstream(folder_ / "incidents") << "a file where the folder would be";
  Election blocked(folder_.string(), 3, 8, {.patience = milliseconds(50)});
  EXPECT_TRUE(blocked.hold(kStep, own).whole);
  EXPECT_TRUE(blocked.hold(kStep + 1, got).whole);
  fs::remove(folder_ / "incidents");
  fs::create_directories(folder_ / "incidents");
  std::ofstream(first_rank_path(folder_.string(), kStep + 2))
      << "{\"step\": 133, \"ra";  // its writer was killed
  EXPECT_TRUE(blocked.hold(kStep + 2, got).whole);
}

/// A mark beyond a limit on file sizes would end a program that does not ignore SIGXFSZ.
TEST_F(ElectionTest, NoRoomForAMark) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit none{16, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  Election election(folder_.string(), 3, 8, {.patience = milliseconds(50)});
  const bool own = election.hold(kStep, all(1, Standing::made_here)[0]).whole;
  const bool got = election.hold(kStep + 1, all(1, Standing::arrived)[0]).whole;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_TRUE(own);
  EXPECT_TRUE(got);
  EXPECT_TRUE(fs::is_empty(folder_ / "incidents")) << "half a mark would keep others waiting";
}

TEST_F(ElectionTest, ALineOfARowIsReadAsItWasWritten) {
  std::string text(5000, 'x');
  text += "\"\n";
  const RankRow row{Standing::loss_bad, 3, text, 12, 7, 4096, 9};
  const std::string line = to_line(row);
  EXPECT_LT(line.size(), 4096u);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto read = rank_row_from(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(std::tie(read->step, read->rank, read->world_size, read->first, read->collectives),
            std::tie(row.step, row.rank, row.world_size, row.first, row.collectives));
  EXPECT_EQ(read->standing, Standing::loss_bad);
  for (const char* bad : {"", "{}\n", "[1]\n", "{\"step\":1}\n", "\n"})
    EXPECT_FALSE(rank_row_from(bad)) << bad;
  EXPECT_FALSE(rank_row_from(line.substr(0, line.size() - 1))) << "not all of it is there";
}

}  // namespace
}  // namespace nanquest
