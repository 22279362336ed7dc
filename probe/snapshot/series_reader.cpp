#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <exception>
#include <limits>
#include <new>

#include "probe/snapshot/reader.h"
#include "probe/snapshot/series.h"
#include "probe/snapshot/series_follow.h"
#include "probe/snapshot/series_format.h"
#include "probe/snapshot/table_reader.h"

namespace nanquest {
namespace {

/// The number of rows of the longest table.
std::size_t rows_of(const CheckedFile& file) {
  std::size_t rows = 0;
  for (const auto& [name, dataset] : file.datasets())
    if (name.starts_with("history/") && name.ends_with("/values") && dataset.shape.size() == 2)
      rows = std::max(rows, static_cast<std::size_t>(dataset.shape[0]));
  return rows;
}

/// The rows from `from` on that are complete in every table; of these the last `most`.
Result<std::vector<SeriesTable>> read_rows(const std::string& path, std::size_t from,
                                           std::size_t most = std::numeric_limits<std::size_t>::max()) {
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
  if (const std::size_t rows = rows_of(*file); rows > most) from = std::max(from, rows - most);
  TableFileReader tables(*file, ReaderLimits{}.max_rows);
  std::vector<SeriesTable> out;
  tables.read_history(out, from);
  if (!tables.ok()) return tables.status().error();
  std::size_t complete = std::numeric_limits<std::size_t>::max();
  for (const SeriesTable& t : out) {
    std::size_t rows = t.rows();
    while (rows > 0 && is_unwritten(t.values[(rows - 1) * t.columns.size()])) --rows;
    complete = std::min(complete, rows);
  }
  for (SeriesTable& t : out) t.values.resize(complete * t.columns.size());
  return out;
}

/// Calls `read` and turns its exceptions into an error of `path`.
template <class Read>
auto guarded(const std::string& path, const Read& read) -> decltype(read()) try {
  return read();
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::bad_file, path + ": needs more memory than there is", ""};
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, path + ": " + e.what(), ""};
}

/// Identifies the file that has that name now; zeros if there is none.
SeriesPlace place_of(const std::string& path) {
  SeriesPlace place;
  struct stat is {};
  if (::stat(path.c_str(), &is) == 0) {
    place.device = is.st_dev;
    place.inode = is.st_ino;
  }
  return place;
}

/// Whether `last` is the first row of `now`, bit for bit: a NaN equals itself.
bool begins_with(const std::vector<SeriesTable>& now, const std::vector<SeriesTable>& last) {
  const auto same = [](double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
  };
  return std::equal(now.begin(), now.end(), last.begin(), last.end(),
                    [&](const SeriesTable& a, const SeriesTable& b) {
                      return a.name == b.name && a.columns == b.columns && a.rows() > 0 &&
                             std::equal(b.values.begin(), b.values.end(), a.values.begin(), same);
                    });
}

void keep_last_row(const std::vector<SeriesTable>& tables, SeriesPlace& place) {
  place.last.clear();
  for (const SeriesTable& t : tables) {
    const auto width = static_cast<std::ptrdiff_t>(std::min(t.columns.size(), t.values.size()));
    place.last.push_back({t.name, t.columns, {t.values.end() - width, t.values.end()}});
  }
}

Result<SeriesNews> read_on(const std::string& path, SeriesPlace& place) {
  SeriesPlace now = place_of(
      path);  // before the file is read, so that a file that replaces it meanwhile counts as another one
  if (place.rows > 0 && now.device == place.device && now.inode == place.inode) {
    Result<std::vector<SeriesTable>> tail = read_rows(path, place.rows - 1);
    if (!tail) return tail.error();
    if (begins_with(*tail, place.last)) {
      keep_last_row(*tail, place);
      for (SeriesTable& t : *tail)
        t.values.erase(t.values.begin(), t.values.begin() + static_cast<std::ptrdiff_t>(t.columns.size()));
      if (!tail->empty()) place.rows += tail->front().rows();
      return SeriesNews{true, std::move(tail).value()};
    }
  }
  Result<std::vector<SeriesTable>> all = read_rows(path, 0);
  if (!all) return all.error();
  now.rows = all->empty() ? 0 : all->front().rows();
  keep_last_row(*all, now);
  place = std::move(now);
  return SeriesNews{false, std::move(all).value()};
}

}  // namespace

Result<std::vector<SeriesTable>> read_series(const std::string& path) {
  return guarded(path, [&] { return read_rows(path, 0); });
}

Result<std::vector<SeriesTable>> read_series_end(const std::string& path, std::size_t rows) {
  return guarded(path, [&] { return read_rows(path, 0, rows); });
}

Result<SeriesNews> read_series_on(const std::string& path, SeriesPlace& place) {
  return guarded(path, [&] { return read_on(path, place); });
}

std::map<std::int64_t, double> losses_of(const std::vector<SeriesTable>& tables) {
  std::map<std::int64_t, double> losses;
  for (const SeriesTable& table : tables) {
    const auto place = [&](const char* name) {
      return static_cast<std::size_t>(std::find(table.columns.begin(), table.columns.end(), name) -
                                      table.columns.begin());
    };
    const std::size_t step = place("step"), loss = place("loss"), columns = table.columns.size();
    if (table.name != "scalars" || step == columns || loss == columns) continue;
    for (std::size_t row = 0; row < table.rows(); ++row)
      losses[static_cast<std::int64_t>(table.values[row * columns + step])] =
          table.values[row * columns + loss];
  }
  return losses;
}

}  // namespace nanquest
