/// Follows a series that grows: only appended rows are read.
///
///     SeriesPlace place;                              // nothing was read yet
///     auto all = read_series_on(path, place);         // every row
///     auto more = read_series_on(path, place);        // those written since, `appended`
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "probe/snapshot/model.h"

namespace nanquest {

/// How far a reader of a series has read, and which file. Empty: nothing was read.
struct SeriesPlace {
  std::uint64_t device = 0, inode = 0;
  std::size_t rows = 0;           ///< that were read
  std::vector<SeriesTable> last;  ///< every table with the last row that was read
};

/// New data for a reader: rows that follow those it has, or another series.
struct SeriesNews {
  bool appended = false;  ///< false: `tables` are the whole series and replace what was read before
  std::vector<SeriesTable> tables;
};

/// Reads the rows since `place` and advances it; the cost depends on the appended rows, not on the file.
/// Returns the whole series if nothing was read yet, or if the file is no longer the one that was read:
/// replaced (a resumed run makes another), truncated, or with other tables or another last row. Errors are
/// those of `read_series` and leave `place` unchanged.
Result<SeriesNews> read_series_on(const std::string& path, SeriesPlace& place);

}  // namespace nanquest
