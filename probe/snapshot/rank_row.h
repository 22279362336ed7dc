/// RankRow: what a rank reports of a bad step if other ranks write the full snapshot (probe/step/election.h).
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

/// What a rank knows about the origin of its bad step.
enum class Standing : std::uint8_t {
  unknown,    ///< its gradients are bad; where that began was not checked
  arrived,    ///< a collective brought the bad value
  loss_bad,   ///< its own loss is bad; where that began was not checked
  made_here,  ///< its own op, state or batch made it
};

struct RankRow {
  Standing standing = Standing::unknown;
  std::int64_t collectives =
      -1;            ///< collectives before its culprit: the one clock that ranks share; -1: not known
  std::string text;  ///< the culprit in words, "" if there is none
  std::int64_t step = 0;
  std::int32_t rank = 0, world_size = 1;
  std::int32_t first = -1;  ///< in a row, the rank that was first; -1 in the first rank's own row
};

/// run/incidents/step-00000131.r7.row and run/incidents/step-00000131.first. `attempt`: "" or a short word
/// that distinguishes repeated runs of the step: step-00000131.2.first.
std::string rank_row_path(const std::string& run_dir, std::int64_t step, std::int32_t rank,
                          const std::string& attempt = "");
std::string first_rank_path(const std::string& run_dir, std::int64_t step, const std::string& attempt = "");

/// One line with its newline; a text that is too long for a small file is cut.
std::string to_line(const RankRow& row);
/// Nothing if `line` is no such line or incomplete.
std::optional<RankRow> rank_row_from(const std::string& line);
/// The line of a file; nothing if the file is missing or contains no such line.
std::optional<RankRow> read_rank_row(const std::string& path);

/// The rows of a step beside `snapshot` (a file in run/incidents), by rank; at most `most`. Unreadable rows
/// are left out; if a step was run more than once, the last row of a rank counts.
std::map<std::int32_t, RankRow> rank_rows_beside(const std::string& snapshot, std::size_t most);

}  // namespace nanquest
