/// Election: which ranks of a large run write whole files of a bad step.
///
/// By a collective every rank of a data-parallel run shows the bad value of one of them in the same step. The
/// file that matters is that of the rank that made it; of thousands of others a few are enough to compare
/// with. So, from a number of ranks on, these write whole files: the rank that is first to say that the fault
/// is its own, its two neighbours, the rank on the other side of the ring, and any other rank that also says
/// so and whose fault came before fewer collectives than the first one's. All others leave a row: one small
/// file. Where nobody says so within `patience`, nobody knows, and all write as if there were no election.
///
/// The ranks meet in the run directory: whoever makes `step-N.first` first (an exclusive creation) has won.
/// Nothing of the program's own communication is used. A rank costs the file system one file and a number of
/// looks that does not depend on how many ranks there are. Where the run directory is not shared between
/// machines each of them elects its own.
///
///     Election election(run_dir, rank, world_size, {});
///     const Seat seat = election.hold(step, {Standing::made_here, 12, "aten::log in head made 1 x -inf"});
///     if (seat.whole) write_snapshot(…);   // else its row is written, and seat.first is the rank to read
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "probe/base/result.h"
#include "probe/snapshot/rank_row.h"

namespace nanquest {

struct ElectionOptions {
  int from_ranks = 8;  ///< below so many ranks every one writes its file; 0: however many there are
  /// How long a rank waits for another that says that the fault is its own. A rank that says so never waits.
  std::chrono::milliseconds patience{3000};
  int restart = 0;  ///< above 0: the run goes on in the run directory of an earlier one
};

/// What an election came to for this rank.
struct Seat {
  bool whole = true;        ///< a whole file is to be written
  std::int32_t first = -1;  ///< where it is not: the rank whose file tells the story …
  std::string says = {};    ///< … and what that one says of it, "" if nothing
};

class Election {
 public:
  Election(std::string run_dir, std::int32_t rank, std::int32_t world_size, ElectionOptions options)
      : run_dir_(std::move(run_dir)), rank_(rank), world_size_(world_size), options_(options) {}

  /// Whether there is anything to decide: enough ranks for it.
  bool needed() const { return options_.from_ranks > 0 && world_size_ >= options_.from_ranks; }
  /// Decides for this rank, once a step; `row` is written where no whole file is to be (its step, rank and
  /// world_size are filled here). Waits for at most `patience`. What goes wrong (a directory that can't be
  /// written) makes it a whole file.
  Seat hold(std::int64_t step, RankRow row);

 private:
  Seat seat(const RankRow& own, const RankRow& first) const;

  std::string run_dir_;
  std::int32_t rank_, world_size_;
  ElectionOptions options_;
  std::map<std::int64_t, int> held_;  ///< how often, by step: one that is run again is another election
};

}  // namespace nanquest
