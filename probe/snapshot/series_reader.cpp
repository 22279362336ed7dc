#include "probe/snapshot/series.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <limits>
#include <new>

#include "probe/snapshot/reader.h"
#include "probe/snapshot/series_format.h"
#include "probe/snapshot/table_reader.h"

namespace nanquest {

Result<std::vector<SeriesTable>> read_series(const std::string& path) try {
  const h5::Quiet quiet;
  Result<CheckedFile> file = CheckedFile::open(path, true);
  if (!file) return file.error();
  std::string format, version;
  if (!h5::get_attribute(file->root(), "format", format) || format != kSeriesFormat ||
      !h5::get_attribute(file->root(), "format_version", version))
    return Error{ErrorCode::bad_file, path + ": not a nanquest series",
                 "series are the series.r*.h5 files of a run directory"};
  int major = -1;
  std::from_chars(version.data(), version.data() + version.size(), major);
  if (major < 0 || major > kSeriesMajor)
    return Error{ErrorCode::bad_file,
                 path + ": written in series format " + version + ", this program reads up to 1.x",
                 "use a newer nanquest"};
  TableFileReader tables(*file, ReaderLimits{}.max_rows);
  std::vector<SeriesTable> out;
  tables.read_history(out);
  if (!tables.ok()) return tables.status().error();
  std::size_t complete = std::numeric_limits<std::size_t>::max();
  for (const SeriesTable& t : out) {
    std::size_t rows = t.rows();
    while (rows > 0 && is_unwritten(t.values[(rows - 1) * t.columns.size()])) --rows;
    complete = std::min(complete, rows);
  }
  for (SeriesTable& t : out) t.values.resize(complete * t.columns.size());
  return out;
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::bad_file, path + ": needs more memory than there is", ""};
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, path + ": " + e.what(), ""};
}

}  // namespace nanquest
