#include "tests/scale/elections.h"

#include <latch>
#include <thread>

namespace nanquest::testing {

std::vector<Vote> hold_elections(const std::string& run_dir, std::int64_t step,
                                 const std::vector<Voter>& voters,
                                 const std::function<bool(std::int32_t rank)>& takes_part) {
  std::vector<Vote> votes(voters.size());
  std::latch all_here(1);
  ElectionClock::time_point began;
  const auto vote = [&](std::int32_t rank) {
    const Voter& voter = voters[static_cast<std::size_t>(rank)];
    Vote& mine = votes[static_cast<std::size_t>(rank)];
    Election election(run_dir, rank, static_cast<std::int32_t>(voters.size()), {});
    all_here.wait();
    std::this_thread::sleep_until(began + voter.arrives);
    const FileCalls before = file_calls();
    mine.arrived = ElectionClock::now();
    mine.whole = election.hold(step, voter.row).whole;
    mine.seated = ElectionClock::now();
    mine.calls = file_calls() - before;
    mine.held = true;
  };
  std::vector<std::jthread> ranks;  // joined also if another thread can't be created
  struct Release {
    std::latch& latch;
    ~Release() {
      if (!latch.try_wait()) latch.count_down();
    }
  } const release{all_here};
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(voters.size()); ++rank)
    if (takes_part(rank)) ranks.emplace_back(vote, rank);
  began = ElectionClock::now() + std::chrono::milliseconds(20);
  all_here.count_down();
  for (std::jthread& rank : ranks) rank.join();
  return votes;
}

}  // namespace nanquest::testing
