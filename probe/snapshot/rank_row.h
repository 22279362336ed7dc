/// RankRow: what a rank says of a bad step whose whole file it leaves to others (probe/step/election.h).
///
///     run/incidents/step-00000131.r7.row        one line of JSON
///     run/incidents/step-00000131.first         the same, of the rank that was first
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "probe/base/result.h"

namespace nanquest {

/// What a rank knows of whose fault its bad step is.
enum class Standing : std::uint8_t {
  unknown,    ///< its gradients are bad, and nobody has looked at where that began
  arrived,    ///< a collective brought the bad value
  loss_bad,   ///< its own loss is bad, and nobody has looked at where that began
  made_here,  ///< an op of its own made it, or its own state or batch held it
};

struct RankRow {
  Standing standing = Standing::unknown;
  std::int64_t collectives =
      -1;            ///< that came before its culprit: the one clock that ranks share; -1: nobody knows
  std::string text;  ///< the culprit in words, "" if there is none
  std::int64_t step = 0;
  std::int32_t rank = 0, world_size = 1;
  std::int32_t first = -1;  ///< the rank that was first, in a row; -1 in what that one says itself
};

/// run/incidents/step-00000131.r7.row and run/incidents/step-00000131.first. `attempt`: "" or a short word
/// that tells this time from others that the step was run: step-00000131.2.first.
std::string rank_row_path(const std::string& run_dir, std::int64_t step, std::int32_t rank,
                          const std::string& attempt = "");
std::string first_rank_path(const std::string& run_dir, std::int64_t step, const std::string& attempt = "");

/// One line, its newline included; a text that is too long for a small file is cut.
std::string to_line(const RankRow& row);
/// Nothing if it is no such line, or not all of one.
std::optional<RankRow> rank_row_from(const std::string& line);
/// The line that is all of a file; nothing if there is no such file, or no such line in it.
std::optional<RankRow> read_rank_row(const std::string& path);

/// The rows of a step beside `snapshot` (a file in run/incidents), by rank; at most `most`. What can't be
/// read is left out; of a step that was run more than once the last row of a rank counts.
std::map<std::int32_t, RankRow> rank_rows_beside(const std::string& snapshot, std::size_t most);

}  // namespace nanquest
