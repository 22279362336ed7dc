/// The history of a run: series.rR.h5, written during training (SWMR), readable at any time, even after
/// SIGKILL. One extendable 2-D dataset [step, column] per table.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "probe/base/result.h"
#include "probe/snapshot/model.h"

namespace nanquest {

class SeriesWriter {
 public:
  /// Creates (or, with `append`, continues) `path`. `tables` give names and columns; their values are
  /// ignored. Columns can't change afterwards. With `append`, rows whose first column ("step") in the first
  /// table is ≥ `from_step` are dropped from every table; if the file has other tables or columns, the error
  /// is `usage`. Columns of the probe that an older version did not write yet (scalars.h) are NaN in its
  /// rows.
  static Result<SeriesWriter> create(const std::string& path, const std::vector<SeriesTable>& tables,
                                     bool append = false, double from_step = 0);
  SeriesWriter(SeriesWriter&&) noexcept;
  SeriesWriter& operator=(SeriesWriter&&) noexcept;
  ~SeriesWriter();

  /// Appends one row to every table, in the order given to `create`; each span has that table's number of
  /// columns. If the disk is full: `io`; rows are kept and written once there is room (up to 64 MiB of them,
  /// and only if the file system can reserve room; otherwise the first failure is final).
  Status append(const std::vector<std::span<const double>>& rows);
  /// Makes all rows so far visible to readers and safe against a kill. Also done automatically every second.
  Status flush();

 private:
  struct Impl;
  explicit SeriesWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Reads all tables (rows that are complete in every table); works while a writer is appending, in
/// this process or another, and after it was killed.
Result<std::vector<SeriesTable>> read_series(const std::string& path);

/// The same of its last `rows` rows at most, without reading those before: fewer while one is being written.
Result<std::vector<SeriesTable>> read_series_end(const std::string& path, std::size_t rows);

/// The loss of each step, the last one of a step that was repeated; empty without such columns.
std::map<std::int64_t, double> losses_of(const std::vector<SeriesTable>& tables);

}  // namespace nanquest
