// An incident in a run of up to 4096 ranks: files, bytes and file-system calls grow linearly with the ranks,
// a rank's own share stays constant, and the writers are decided within a second.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <system_error>

#include "probe/snapshot/rank_row.h"
#include "probe/snapshot/run_dir.h"
#include "tests/scale/elections.h"

namespace nanquest::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;

constexpr std::int64_t kStep = 131;
constexpr int kSizes[] = {512, 4096};
constexpr int kGroup = 64;
/// Microseconds within which the ranks reach the bad step: a collective keeps them together.
constexpr int kSpread = 200'000;
constexpr const char* kText =
    "aten::native_layer_norm in model.layers.17.input_layernorm (forward) made 4096 x NaN out of finite "
    "inputs";

/// The cost of an incident in total, and the largest of one rank.
struct Cost {
  std::size_t files = 0, bytes = 0, whole = 0;
  FileCalls all;
  std::uint64_t most_metadata = 0, most_in_vain = 0;  ///< of one rank
  double slowest = 0;   ///< seconds from the mark, or a later arrival, to a rank's seat
  double together = 0;  ///< seconds from the mark to the last seat, including late arrivals
};

class ElectionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory if possible: a disk that other programs use stops all ranks for seconds.
    const bool memory = ::access("/dev/shm", W_OK | X_OK) == 0;
    folder_ = (memory ? fs::path("/dev/shm") : fs::temp_directory_path()) /
              ("nanquest-elections-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Ranks whose bad value arrived by a collective, in an order that a network and a scheduler may cause;
  /// always the same.
  static std::vector<Voter> arrived(int ranks) {
    std::mt19937 chance(7);
    std::uniform_int_distribution<int> when(0, kSpread);
    std::vector<Voter> voters(static_cast<std::size_t>(ranks));
    for (Voter& voter : voters) {
      voter.row = {.standing = Standing::arrived, .collectives = 7, .text = kText};
      voter.arrives = microseconds(when(chance));
    }
    return voters;
  }

  /// Holds the election, and counts the files of the directory and the rows in it.
  void hold(const std::vector<Voter>& voters, Cost& cost) {
    const std::string run = (folder_ / std::to_string(voters.size())).string();
    fs::remove_all(run);
    fs::create_directories(incidents_dir(run));  // as at the start of the run
    const std::vector<Vote> votes = hold_elections(run, kStep, voters, [](std::int32_t) { return true; });
    cost = {};
    std::set<std::int32_t> rows;
    for (const auto& entry : fs::directory_iterator(incidents_dir(run))) {
      ++cost.files;
      cost.bytes += entry.file_size();
      if (entry.path().extension() != ".row") continue;
      const auto row = read_rank_row(entry.path().string());
      ASSERT_TRUE(row) << entry.path();
      rows.insert(row->rank);
    }
    for (std::size_t rank = 0; rank < votes.size(); ++rank) {
      const Vote& vote = votes[rank];
      cost.whole += vote.whole;
      ASSERT_NE(vote.whole, rows.count(static_cast<std::int32_t>(rank)) > 0) << "rank " << rank;
      cost.all.metadata += vote.calls.metadata;
      cost.all.in_vain += vote.calls.in_vain;
      cost.all.reads += vote.calls.reads;
      cost.all.writes += vote.calls.writes;
      cost.all.bytes_written += vote.calls.bytes_written;
      cost.most_metadata = std::max(cost.most_metadata, vote.calls.metadata);
      cost.most_in_vain = std::max(cost.most_in_vain, vote.calls.in_vain);
    }
    EXPECT_EQ(cost.all.bytes_written, cost.bytes) << "what is counted is what was written";
    take_time(voters, votes, cost);
  }

  /// Times from the first rank's claim that the value is its own.
  static void take_time(const std::vector<Voter>& voters, const std::vector<Vote>& votes, Cost& cost) {
    std::optional<ElectionClock::time_point> mark;
    for (std::size_t rank = 0; rank < votes.size(); ++rank)
      if (voters[rank].row.standing == Standing::made_here)
        mark = std::min(mark.value_or(votes[rank].seated), votes[rank].seated);
    if (!mark) return;
    for (const Vote& vote : votes) {
      const std::chrono::duration<double> own = vote.seated - std::max(*mark, vote.arrived);
      const std::chrono::duration<double> since = vote.seated - *mark;
      cost.slowest = std::max(cost.slowest, own.count());
      cost.together = std::max(cost.together, since.count());
    }
  }

  static void print(const char* what, int ranks, const Cost& c) {
    std::printf(
        "%-9s %4d ranks: %4zu whole, %4zu files, %7zu bytes, %6llu calls (at most %llu of a rank), "
        "%6llu looks (at most %llu), slowest %.3f s, all %.3f s\n",
        what, ranks, c.whole, c.files, c.bytes, static_cast<unsigned long long>(c.all.metadata),
        static_cast<unsigned long long>(c.most_metadata), static_cast<unsigned long long>(c.all.in_vain),
        static_cast<unsigned long long>(c.most_in_vain), c.slowest, c.together);
  }

  /// The cost at each size, with voters from `make`. Ends the test if there can't be so many threads.
  std::vector<Cost> each_size(const char* what, const std::function<std::vector<Voter>(int)>& make) {
    std::vector<Cost> costs;
    for (const int ranks : kSizes) {
      Cost& cost = costs.emplace_back();
      hold(make(ranks), cost);
      print(what, ranks, cost);
      if (HasFatalFailure()) break;
    }
    return costs;
  }

  fs::path folder_;
};

/// A rank's own share, whichever rank and however many there are: the directory, the mark (created, or opened
/// and measured), the row; a mark that is just being written is opened and measured again.
constexpr std::uint64_t kOwnCalls = 5, kInThatMoment = 2 * 24;

void expect_linear(const std::vector<Cost>& costs) {
  ASSERT_EQ(costs.size(), std::size(kSizes));
  const double bytes_of_a_row =
      static_cast<double>(costs.front().bytes) / static_cast<double>(costs.front().files);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto ranks = static_cast<std::uint64_t>(kSizes[i]);
    EXPECT_LE(costs[i].files, ranks + 1);
    // Its own number, that of the first rank and that of all ranks each have at most one more digit.
    EXPECT_LE(static_cast<double>(costs[i].bytes),
              (bytes_of_a_row + 3) * static_cast<double>(costs[i].files));
    EXPECT_LE(costs[i].most_metadata, kOwnCalls + kInThatMoment) << kSizes[i] << " ranks";
    EXPECT_LE(costs[i].all.metadata, (kOwnCalls + 1) * ranks) << "such moments are few";
    EXPECT_LE(costs[i].all.writes, ranks);
  }
}

TEST_F(ElectionsTest, OneCulprit) {
  const auto costs = each_size("one", [](int ranks) {
    std::vector<Voter> voters = arrived(ranks);
    Voter& culprit = voters[static_cast<std::size_t>(ranks / 3)];
    culprit.row.standing = Standing::made_here;
    culprit.arrives = microseconds(kSpread / 2);  // some wait for it, others come after it
    return voters;
  });
  expect_linear(costs);
  for (const Cost& cost : costs) {
    EXPECT_EQ(cost.whole, 4u);
    EXPECT_LE(cost.most_in_vain, 6u) << "of a rank that waits for a tenth of a second: after 10, 30, 70 ms";
  }
}

TEST_F(ElectionsTest, OneThatComesLast) {
  const auto costs = each_size("last", [](int ranks) {
    std::vector<Voter> voters = arrived(ranks);
    Voter& culprit = voters[static_cast<std::size_t>(ranks - 1)];
    culprit.row.standing = Standing::made_here;
    culprit.arrives = microseconds(5 * kSpread);  // all wait for it
    return voters;
  });
  expect_linear(costs);
  for (const Cost& cost : costs) {
    EXPECT_EQ(cost.whole, 4u);
    EXPECT_LE(cost.most_in_vain, 11u) << "of a rank that waits for a second: seldomer the longer it waits";
  }
}

TEST_F(ElectionsTest, AGroupThatSaysSo) {
  for (const bool alike : {true, false}) {
    const auto costs = each_size(alike ? "group" : "earlier", [&](int ranks) {
      std::vector<Voter> voters = arrived(ranks);
      for (int one = 0; one < kGroup; ++one) {
        Voter& voter = voters[static_cast<std::size_t>(ranks / 4 + one)];
        voter.row.standing = Standing::made_here;
        if (!alike) voter.row.collectives = one;
      }
      return voters;
    });
    expect_linear(costs);
    for (const Cost& cost : costs) {
      if (alike) EXPECT_EQ(cost.whole, 4u);
      EXPECT_LE(cost.whole, kGroup + 3u)
          << "those of the group whose fault was earlier, and three that look on";
    }
  }
}

TEST_F(ElectionsTest, AllSaySo) {
  const auto costs = each_size("all", [](int ranks) {
    std::vector<Voter> voters = arrived(ranks);
    for (Voter& voter : voters) voter.row.standing = Standing::made_here;
    return voters;
  });
  expect_linear(costs);
  for (const Cost& cost : costs) EXPECT_EQ(cost.whole, 4u);
}

TEST_F(ElectionsTest, NobodySaysSo) {
  const auto costs = each_size("nobody", [](int ranks) {
    std::vector<Voter> voters = arrived(ranks);
    for (Voter& voter : voters) voter.row.standing = Standing::unknown;
    return voters;
  });
  for (std::size_t i = 0; i < costs.size(); ++i) {
    EXPECT_EQ(costs[i].whole, static_cast<std::size_t>(kSizes[i]));
    EXPECT_EQ(costs[i].files, 0u);
    EXPECT_EQ(costs[i].most_metadata, 1u);
    EXPECT_LE(costs[i].most_in_vain, 24u) << "in the three seconds of its patience";
  }
}

}  // namespace
}  // namespace nanquest::testing
