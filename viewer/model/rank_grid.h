/// RankGrid: what the processes of a distributed run left of one step, and which of them was first.
///
///     const RankGrid grid = rank_grid(session);
///     for (const RankCell& cell : grid.cells) …   // one per rank, from 0 on
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probe/snapshot/rank_row.h"
#include "viewer/model/session.h"

namespace nanquest::viewer {

/// What a rank left: nothing, a row of a few words, a whole file, or a file that is gone.
enum class RankLeft : std::uint8_t { nothing, row, file, lost };
/// "nothing", "a row", "a whole file", "a file that is not here".
const char* words_of(RankLeft left);

struct RankCell {
  std::int32_t rank = 0;
  RankLeft left = RankLeft::nothing;
  bool first = false;          ///< was the first with a bad value of its own
  int incident = -1;           ///< row of Session::incidents(): its file, the last attempt
  std::optional<RankRow> row;  ///< what it wrote of itself
  std::string says;            ///< "made a bad value of its own", "FP16_OVERFLOW"; "" for nothing
  std::string about;           ///< op and module, or where its file is

  /// "rank 3 left a row: got it by a collective".
  std::string text() const;
};

struct RankGrid {
  std::int64_t step = -1;  ///< -1: no incident is selected
  std::int32_t world_size = 1;
  std::vector<RankCell> cells;  ///< by rank; none for a run of one process
  std::string first_text;       ///< the rank that was first, and the source of that; "" if unknown
  std::string verdict_text;     ///< what the verdict says of the ranks
  bool cut = false;             ///< there are more ranks than cells

  std::size_t count(RankLeft left) const;
  /// "Step 131: 4 of 4,096 ranks left a whole file, 4,092 a row".
  std::string headline() const;
};

/// The most ranks that are drawn and listed.
inline constexpr std::int32_t kMostRanks = 65536;

/// For the step of the selected incident. Reads nothing.
RankGrid rank_grid(const Session& session);

}  // namespace nanquest::viewer
