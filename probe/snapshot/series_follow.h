/// Following a series that grows: only the rows that were appended are read.
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

/// How far a reader of a series is, and in which file. Empty: nothing was read.
struct SeriesPlace {
  std::uint64_t device = 0, inode = 0;
  std::size_t rows = 0;           ///< that were read
  std::vector<SeriesTable> last;  ///< every table with the last row that was read
};

/// What a reader learns: rows that follow the ones it has, or another series.
struct SeriesNews {
  bool appended = false;  ///< false: `tables` are the whole series, and what was read before is void
  std::vector<SeriesTable> tables;
};

/// Reads what came since `place` and moves it on; costs what was appended, not what is there. The whole
/// series is given where nothing was read yet, and where the file is no longer the one that was read:
/// replaced (a resumed run makes another), cut, or with other tables or another last row. Errors are those of
/// `read_series` and leave `place` as it is.
Result<SeriesNews> read_series_on(const std::string& path, SeriesPlace& place);

}  // namespace nanquest
