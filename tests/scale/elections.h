/// The elections of all ranks of a run for one bad step, on one machine: each rank is a thread, and they
/// share a real directory.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "probe/step/election.h"
#include "tests/scale/file_calls.h"

namespace nanquest::testing {

using ElectionClock = std::chrono::steady_clock;

/// One rank: its row, and when it reaches the bad step, counted from the first rank.
struct Voter {
  RankRow row;
  std::chrono::microseconds arrives{0};
};

/// The rank's result.
struct Vote {
  bool held = false;  ///< false: this rank took no part
  bool whole = false;
  FileCalls calls;
  ElectionClock::time_point arrived, seated;
};

/// Holds the election of `step` for every rank of `voters` that `takes_part`, all at once. std::system_error
/// if the machine does not allow a process so many threads.
std::vector<Vote> hold_elections(const std::string& run_dir, std::int64_t step,
                                 const std::vector<Voter>& voters,
                                 const std::function<bool(std::int32_t rank)>& takes_part);

}  // namespace nanquest::testing
