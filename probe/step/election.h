/// Election: which ranks of a large run write whole files of a bad step.
///
/// After a collective, every rank of a data-parallel run shows the bad value of one of them in the same step.
/// The file that matters is that of the rank that made the value; of the others a few are enough for
/// comparison. So, with at least `least` ranks, whole files are written by: the first rank that reports the
/// fault as its own, its two neighbours, the rank on the other side of the ring, and any other rank that
/// reports the same and whose fault came before fewer collectives. All others leave a row: one small file. If
/// no rank reports the fault as its own within `patience`, all write whole files as if there were no
/// election.
///
/// The ranks meet in the run directory: the rank that first creates `step-N.first` (exclusively) wins. The
/// program's own communication is not used. A rank costs the file system one file and a number of look-ups
/// that does not depend on the number of ranks. Where the run directory is not shared between machines, each
/// machine elects its own.
///
///     Election election(run_dir, rank, world_size, {});
///     const Seat seat = election.hold(step, {Standing::made_here, 12, "aten::log in head made 1 x -inf"});
///     if (seat.whole) write_snapshot(…);   // otherwise its row is written, and seat.first is the rank to
///     read
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
  int from_ranks = 8;  ///< with fewer ranks every one writes its file; 0: always hold an election
  /// How long a rank waits for another one that reports the fault as its own. A rank that reports it never
  /// waits.
  std::chrono::milliseconds patience{3000};
  int restart = 0;  ///< above 0: the run continues in the run directory of an earlier one
};

/// The result of an election for this rank.
struct Seat {
  bool whole = true;        ///< write a whole file
  std::int32_t first = -1;  ///< otherwise: the rank whose file to read …
  std::string says = {};    ///< … and what that rank reported, or ""
};

class Election {
 public:
  Election(std::string run_dir, std::int32_t rank, std::int32_t world_size, ElectionOptions options)
      : run_dir_(std::move(run_dir)), rank_(rank), world_size_(world_size), options_(options) {}

  /// Whether an election is held: there are enough ranks.
  bool needed() const { return options_.from_ranks > 0 && world_size_ >= options_.from_ranks; }
  /// Decides for this rank, once per step. `row` is written if no whole file is to be written (its step, rank
  /// and world_size are filled here). Waits for at most `patience`. On an error (a directory that can't be
  /// written) the rank writes a whole file.
  Seat hold(std::int64_t step, RankRow row);

 private:
  Seat seat(const RankRow& own, const RankRow& first) const;

  std::string run_dir_;
  std::int32_t rank_, world_size_;
  ElectionOptions options_;
  std::map<std::int64_t, int> held_;  ///< elections by step: a step that is run again is another election
};

}  // namespace nanquest
