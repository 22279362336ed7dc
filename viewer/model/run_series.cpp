#include "viewer/model/run_series.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "probe/snapshot/series.h"
#include "viewer/model/taster.h"

namespace nanquest::viewer {

namespace fs = std::filesystem;

/// A run without it has no headroom, which is no error.
void RunSeries::read_headroom(const std::string& run) {
  headroom_error_.clear();
  const std::string path = ranges_path(run, rank_);
  std::error_code ec;
  if (!fs::exists(path, ec)) {
    headroom_ = std::make_shared<Headroom>();
    return;
  }
  const Status well = tasted(Taste::ranges, path);
  const Result<std::vector<PlaceRanges>> ranges =
      well ? read_ranges(path) : Result<std::vector<PlaceRanges>>(well.error());
  if (ranges)
    headroom_ = std::make_shared<Headroom>(*ranges);
  else
    headroom_error_ = ranges.error().text();
}

/// Continues where the last reading ended, as long as the file is the same. Null, and `error_` says why, if
/// it can't be read.
std::shared_ptr<const History> RunSeries::read_shown(const std::string& path, std::uint64_t bytes,
                                                     Progress* progress) {
  const bool whole = place_.rows == 0;
  if (progress != nullptr && whole) progress->expect(2 * bytes);  // to be read, and to be looked at
  // Rows that come later are not checked in a child process: by then the file has been read, and it changes
  // every second.
  const Status well = whole ? tasted(Taste::series, path) : Status();
  Result<SeriesNews> news = well ? read_series_on(path, place_) : Result<SeriesNews>(well.error());
  if (news && news->appended) {
    auto grown = std::make_shared<History>(*history_);
    if (grown->append(news->tables)) return grown;
    place_ = {};  // a step was repeated: its rows are elsewhere now
    return read_shown(path, bytes, progress);
  }
  if (progress != nullptr && whole) progress->advance(news ? bytes : 2 * bytes);
  if (news) return std::make_shared<const History>(news->tables, progress, whole ? bytes : 0);
  error_ = news.error().text();
  return nullptr;
}

void RunSeries::read(const RunListing& listing, std::int32_t rank, bool all, Progress* progress) {
  error_.clear();
  words_.clear();
  const std::vector<SeriesFile>& files = listing.series;
  // While its file can't be read (it may be being written), a series stays; those of another rank don't.
  if (files.empty() || rank != rank_) {
    history_ = std::make_shared<History>();
    place_ = {};
  }
  rank_ = rank;
  read_headroom(listing.run_dir);
  if (files.empty()) return;
  const SeriesFile* chosen = &files.front();
  for (const SeriesFile& file : files)
    if (file.rank == rank) chosen = &file;
  for (const SeriesFile& file : files) {
    if (&file != chosen && !all) continue;
    if (progress != nullptr && progress->stopped()) return;
    std::error_code ec;
    const std::uintmax_t size = fs::file_size(file.path, ec);
    const std::uint64_t bytes = ec ? 0 : size;
    if (&file == chosen) {
      const std::shared_ptr<const History> read = read_shown(file.path, bytes, progress);
      words_.push_back(word_of(file.rank, read ? *read : History()));
      words_.back().error = error_;
      if (read) history_ = read;
      continue;
    }
    if (progress != nullptr) progress->expect(2 * bytes);
    const Status well = tasted(Taste::series, file.path);
    const Result<std::vector<SeriesTable>> tables =
        well ? read_series(file.path) : Result<std::vector<SeriesTable>>(well.error());
    if (progress != nullptr) progress->advance(tables ? bytes : 2 * bytes);
    words_.push_back(word_of(file.rank, tables ? History(*tables, progress, bytes) : History()));
    if (!tables) words_.back().error = tables.error().text();
  }
}

}  // namespace nanquest::viewer
