#include "probe/snapshot/series.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <limits>

#include "probe/snapshot/check.h"
#include "probe/snapshot/descriptor.h"
#include "probe/snapshot/disk.h"
#include "probe/snapshot/library_sink.h"
#include "probe/snapshot/scalars.h"
#include "probe/snapshot/series_format.h"
#include "probe/snapshot/table_writer.h"

namespace nanquest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kChunkBytes = 64 << 10;
constexpr std::size_t kMostBuffered = 4 << 20;  ///< bytes of rows that are buffered before they are written
constexpr auto kFlushEvery = std::chrono::seconds(1);

/// Creates the empty, extendable dataset [0, columns].
bool make_values(hid_t file, const std::string& name, std::size_t columns) {
  const hsize_t start[2] = {0, columns}, most[2] = {H5S_UNLIMITED, columns};
  const h5::Id space(H5Screate_simple(2, start, most), H5Sclose);
  const h5::Id how(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  const std::size_t width = std::max<std::size_t>(columns, 1);
  const hsize_t chunk[2] = {std::max<hsize_t>(1, kChunkBytes / (8 * width)), width};
  H5Pset_chunk(how.get(), 2, chunk);
  H5Pset_obj_track_times(how.get(), false);
  double fill = unwritten_value();
  H5Pset_fill_value(how.get(), H5T_IEEE_F64LE, &fill);
  const h5::Id dataset(
      H5Dcreate2(file, name.c_str(), H5T_IEEE_F64LE, space.get(), H5P_DEFAULT, how.get(), H5P_DEFAULT),
      H5Dclose);
  return dataset && h5::set_kind(dataset.get(), "series");
}

/// Appends whole rows.
bool append_rows(hid_t dataset, hsize_t& rows, std::size_t columns, const std::vector<double>& values) {
  const hsize_t added = values.size() / columns;
  const hsize_t extent[2] = {rows + added, columns}, first[2] = {rows, 0}, count[2] = {added, columns};
  if (H5Dset_extent(dataset, extent) < 0) return false;
  const h5::Id in_file(H5Dget_space(dataset), H5Sclose);
  const h5::Id in_memory(H5Screate_simple(2, count, nullptr), H5Sclose);
  if (H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, first, nullptr, count, nullptr) < 0 ||
      H5Dwrite(dataset, H5T_IEEE_F64LE, in_memory.get(), in_file.get(), H5P_DEFAULT, values.data()) < 0)
    return false;
  rows += added;
  return true;
}

Status check_tables(const std::string& path, const std::vector<SeriesTable>& tables) {
  SnapshotDoc doc;
  for (const SeriesTable& t : tables) {
    if (t.columns.empty()) return Error{ErrorCode::usage, path + ": table " + t.name + " has no columns", ""};
    doc.history.push_back({t.name, t.columns, {}});
  }
  if (Status good = check_doc(doc); !good)
    return Error{ErrorCode::usage, path + ": " + good.error().message, ""};
  return {};
}

/// Gives `old` the columns of `wanted`: NaN in those that an older version did not write yet. False if they
/// differ in anything else.
bool take_columns(SeriesTable& old, const SeriesTable& wanted) {
  if (old.name != wanted.name) return false;
  if (old.columns == wanted.columns) return true;
  std::vector<std::size_t> from;  // the column of `old`, or its width: new
  const std::size_t width = old.columns.size();
  for (const std::string& column : wanted.columns) {
    from.push_back(static_cast<std::size_t>(std::ranges::find(old.columns, column) - old.columns.begin()));
    if (from.back() == width && !is_probe_column(column)) return false;
  }
  if (static_cast<std::size_t>(std::ranges::count_if(from, [&](std::size_t c) { return c < width; })) !=
      width)
    return false;
  std::vector<double> values;
  values.reserve(old.rows() * from.size());
  for (std::size_t row = 0; row < old.rows(); ++row)
    for (const std::size_t c : from)
      values.push_back(c < width ? old.values[row * width + c] : std::numeric_limits<double>::quiet_NaN());
  old.columns = wanted.columns;
  old.values = std::move(values);
  return true;
}

/// The rows of these tables in `path` before `from_step`.
Result<std::vector<SeriesTable>> rows_to_keep(const std::string& path, const std::vector<SeriesTable>& tables,
                                              double from_step) {
  Result<std::vector<SeriesTable>> old = read_series(path);
  if (!old) return old;
  bool same = old->size() == tables.size();
  for (std::size_t i = 0; same && i < tables.size(); ++i) same = take_columns((*old)[i], tables[i]);
  if (!same)
    return Error{ErrorCode::usage, path + ": was written for other tables or columns",
                 "resume with the model and settings it was written for, or use a new run directory"};
  if (old->empty()) return old;
  // Rows of all tables belong together: the first table's first column is their step. After a roll-back a
  // step occurs twice, so every row is checked.
  const SeriesTable steps = (*old)[0];
  for (SeriesTable& t : *old) {
    std::vector<double> kept;
    const auto width = static_cast<std::ptrdiff_t>(t.columns.size());
    for (std::size_t i = 0; i < steps.rows(); ++i) {
      const auto row = t.values.begin() + static_cast<std::ptrdiff_t>(i) * width;
      if (steps.values[i * steps.columns.size()] < from_step) kept.insert(kept.end(), row, row + width);
    }
    t.values = std::move(kept);
  }
  return old;
}

}  // namespace

struct SeriesWriter::Impl {
  struct Table {
    std::string dataset_name;
    std::size_t columns = 0;
    h5::Id dataset;
    hsize_t rows = 0;
    std::vector<double> waiting;
  };

  ~Impl() {
    const h5::Quiet quiet;
    (void)write_out();  // a destructor can't report a failure; `flush` does
    for (Table& t : tables) t.dataset.reset();
    file.reset();
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }

  Status make(const std::vector<SeriesTable>& wanted);
  Status start(const std::vector<SeriesTable>& kept);
  Status write_out();
  Error failed(const char* doing) const { return disk.failure(path, doing, ErrorCode::io); }

  std::string path, temporary;
  h5::Disk disk;
  h5::Id file;
  std::vector<Table> tables;
  Clock::time_point flushed = Clock::now();
  std::size_t waiting_bytes = 0;
};

Status SeriesWriter::Impl::make(const std::vector<SeriesTable>& wanted) {
  const h5::Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110);
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  const std::string name = temporary_beside(path);
  file = disk.create(name, H5P_DEFAULT, access.get());
  if (!file || !disk.ok()) {
    const Error error = failed("creating");
    file.reset();
    ::unlink(name.c_str());
    return error;
  }
  temporary = name;
  LibrarySink sink(file.get(), path);
  TableFileWriter groups(sink);
  std::vector<std::string> names;
  for (const SeriesTable& t : wanted) {
    const std::string group = "history/" + t.name;
    groups.table(group, "series_table").texts("columns", t.columns);
    tables.push_back({group + "/values", t.columns.size(), {}, 0, {}});
    if (groups.ok() && !make_values(file.get(), tables.back().dataset_name, t.columns.size()))
      return failed("creating");
    names.push_back(t.name);
  }
  groups.table("history/@index", "series_index").texts("names", names);
  groups.write_strings();
  if (!groups.ok()) return groups.status();
  if (!h5::set_attribute(file.get(), "format", std::string_view(kSeriesFormat)) ||
      !h5::set_attribute(file.get(), "format_version", std::string_view(kSeriesVersion)) ||
      !h5::set_kind(file.get(), "series"))
    return failed("creating");
  return {};
}

Status SeriesWriter::Impl::start(const std::vector<SeriesTable>& kept) {
  if (H5Fstart_swmr_write(file.get()) < 0) return failed("starting to write for readers");
  for (std::size_t i = 0; i < tables.size(); ++i) {
    tables[i].dataset = h5::Id(H5Dopen2(file.get(), tables[i].dataset_name.c_str(), H5P_DEFAULT), H5Dclose);
    if (!tables[i].dataset) return failed("opening a table");
    if (i < kept.size()) tables[i].waiting = kept[i].values;
    waiting_bytes += tables[i].waiting.size() * sizeof(double);
  }
  if (Status written = write_out(); !written) return written;
  // The handle stays open across the rename, so the file appears under its name complete.
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return system_error(path, "renaming");
  temporary.clear();
  return sync_directory_of(path);
}

Status SeriesWriter::Impl::write_out() {
  flushed = Clock::now();
  if (!file) return {};
  if (!disk.ok()) return failed("writing");
  constexpr std::uint64_t metadata = 1 << 18;
  const std::uint64_t chunks = tables.size() * 2 * kChunkBytes;
  if (Status room = disk.reserve(file.get(), path, waiting_bytes + chunks + metadata); !room) return room;
  for (Table& t : tables) {
    if (t.waiting.empty()) continue;
    if (!append_rows(t.dataset.get(), t.rows, t.columns, t.waiting)) return failed("writing");
    t.waiting.clear();
  }
  waiting_bytes = 0;
  // Flushes the whole file: after a flush of the datasets alone, only a SWMR reader could read the file of a
  // killed program.
  if (H5Fflush(file.get(), H5F_SCOPE_GLOBAL) < 0 || !disk.ok()) return failed("writing");
  return {};
}

SeriesWriter::SeriesWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SeriesWriter::SeriesWriter(SeriesWriter&&) noexcept = default;
SeriesWriter& SeriesWriter::operator=(SeriesWriter&&) noexcept = default;
SeriesWriter::~SeriesWriter() = default;

Result<SeriesWriter> SeriesWriter::create(const std::string& path, const std::vector<SeriesTable>& tables,
                                          bool append, double from_step) try {
  const h5::Quiet quiet;
  if (Status good = check_tables(path, tables); !good) return good.error();
  if (Status made = make_parents(path); !made) return made.error();
  std::vector<SeriesTable> kept;
  std::error_code error;
  if (append && std::filesystem::exists(path, error)) {
    Result<std::vector<SeriesTable>> old = rows_to_keep(path, tables, from_step);
    if (!old) return old.error();
    kept = std::move(*old);
  }
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  if (Status made = impl->make(tables); !made) return made.error();
  if (Status started = impl->start(kept); !started) return started.error();
  return SeriesWriter(std::move(impl));
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, path + ": " + e.what(), ""};
}

Status SeriesWriter::append(const std::vector<std::span<const double>>& rows) try {
  if (!impl_) return Error{ErrorCode::usage, "this writer is spent", ""};
  if (rows.size() != impl_->tables.size())
    return Error{ErrorCode::usage, impl_->path + ": a row for each of its tables is needed", ""};
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].size() != impl_->tables[i].columns)
      return Error{ErrorCode::usage,
                   impl_->path + ": row of " + std::to_string(rows[i].size()) + " numbers for " +
                       impl_->tables[i].dataset_name + ", which has " +
                       std::to_string(impl_->tables[i].columns),
                   ""};
  if (!impl_->disk.ok()) return impl_->failed("writing");
  // With a full disk rows can't be written; the buffer stays bounded.
  if (impl_->waiting_bytes > 16 * kMostBuffered)
    return Error{ErrorCode::io, impl_->path + ": rows can't be written any more", "free some space there"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    impl_->tables[i].waiting.insert(impl_->tables[i].waiting.end(), rows[i].begin(), rows[i].end());
    impl_->waiting_bytes += rows[i].size_bytes();
  }
  if (impl_->waiting_bytes < kMostBuffered && Clock::now() - impl_->flushed < kFlushEvery) return {};
  const h5::Quiet quiet;
  return impl_->write_out();
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, e.what(), ""};
}

Status SeriesWriter::flush() try {
  if (!impl_) return Error{ErrorCode::usage, "this writer is spent", ""};
  const h5::Quiet quiet;
  return impl_->write_out();
} catch (const std::exception& e) {
  return Error{ErrorCode::internal, e.what(), ""};
}

}  // namespace nanquest
